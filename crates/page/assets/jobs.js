// The jobs that wait, each with its code and obstacle.
import { html } from './vendor/lit-html.js';
import { counted, duration, jobName, queryText, viewAddress } from './format.js';
import { answeredPart, codePart, listPaths, listTable, selectPart, textPart, viewLink } from './parts.js';

export const jobsView = {
  title: () => 'Jobs that wait',
  wanted: (context) => [...listPaths(context, jobsPath(context.route)(''), jobsPath(context.route)), '/summary', '/queues'],
  body: (context) => {
    const { route, store } = context;
    const table = (list) => html`<p>${counted(list.total, 'job waits', 'jobs wait')}.</p>${listTable(context, list, {
      name: jobsPath(route)(''), caption: 'Jobs that wait', columns: jobColumns, pathOf: jobsPath(route), empty: 'Nothing waits.',
    })}`;
    return html`${filterPart(context)}${answeredPart(store.get(jobsPath(route)('offset=0&limit=100')), table)}`;
  },
};

function jobsPath({ query: { namespace, queue, code } }) {
  const place = namespace ? `/namespaces/${encodeURIComponent(namespace)}/explanations` : '/explanations';
  const query = queryText({ queue, code });
  return (range) => `${place}${query ? `${query}&` : '?'}${range}`;
}

function filterPart({ route, store, go }) {
  const change = (key) => (value) => go(viewAddress(['jobs'], { ...route.query, [key]: value }));
  const { namespace, queue = '', code = '' } = route.query;
  const names = (store.get('/queues').document?.items ?? []).map((it) => it.name);
  const codes = Object.keys(store.get('/summary').document?.waiting ?? {});
  const choices = (list, value) => [['', 'any'], ...new Set(value ? [...list, value] : list)];
  return html`<div class="fields" role="search">
    ${textPart('Namespace', namespace, change('namespace'), 'all')}
    ${selectPart('Queue', queue, choices(names, queue), change('queue'))}
    ${selectPart('Code', code, choices(codes, code), change('code'))}
  </div>`;
}

const jobColumns = [
  ['Job', ({ subject }) => (subject.namespace ? viewLink(['jobs', subject.namespace, subject.name], jobName(subject)) : jobName(subject))],
  ['Code', (it) => codePart(it.verdict.code)],
  ['Queue', ({ subject }) => (subject.queue ? viewLink(['queues', subject.queue]) : '–')],
  ['Place', ({ line }) => (line ? `${line.inQueue} of ${line.ofQueue}` : '–'), 'num'],
  ['Waits for', (it) => duration(it.subject.waitingSeconds), 'num'],
  ['Why', (it) => html`<span title=${it.verdict.text}>${it.verdict.text}</span>`, 'wide'],
];
