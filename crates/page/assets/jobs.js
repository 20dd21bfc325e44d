// The jobs that wait, each with its code, obstacle and start, or those that run, with their ends.
import { html } from './vendor/lit-html.js';
import { duration, jobName, queryText, viewAddress } from './format.js';
import { codePart, jobLink, listPart, listPaths, selectPart, textPart, timePart, viewLink } from './parts.js';

const SHORTEST_PAUSE = 250; // milliseconds between two questions about starts

export const jobsView = {
  title: ({ query }) => (query.show ? 'Jobs that run' : 'Jobs that wait'),
  wanted: (context) => [...listPaths(context, jobsPath(context.route)), '/summary', '/queues'],
  body: (context) => {
    const { route, ui } = context;
    Object.assign(ui, { time: 0, startPaths: [] });
    const table = ({ asOf }) => {
      ui.time = Date.parse(asOf.time);
      const columns = route.query.show ? runColumns(asOf.time) : jobColumns(ui, asOf.time);
      return { caption: jobsView.title(route), columns };
    };
    return html`${filterPart(context)}${listPart(context, jobsPath(route), table)}`;
  },
  drawn: askNextStart,
};

// Returns the path of an explanation: `['ml', 'train']`.
export function explanationPath([namespace, name]) {
  return `/namespaces/${encodeURIComponent(namespace)}/explanations/${encodeURIComponent(name)}?when=true`;
}

function jobsPath({ query: { show, namespace, queue, code } }) {
  const place = `${namespace ? `/namespaces/${encodeURIComponent(namespace)}` : ''}/${show ? 'runs' : 'explanations'}`;
  const query = queryText({ queue, code: show ? '' : code });
  return (range) => `${place}${query ? `${query}&` : '?'}${range}`;
}

function filterPart({ route, store, go }) {
  const change = (key) => (value) => go(viewAddress(['jobs'], { ...route.query, [key]: value }));
  const { show = '', namespace, queue = '', code = '' } = route.query;
  const names = (store.get('/queues').document?.items ?? []).map((it) => it.name);
  const codes = Object.keys(store.get('/summary').document?.waiting ?? {});
  const choices = (list, value) => [['', 'any'], ...new Set(value ? [...list, value] : list)];
  return html`<div class="fields" role="search">
    ${selectPart('Show', show, [['', 'waiting'], ['running', 'running']], change('show'))}
    ${textPart('Namespace', namespace, change('namespace'), 'all')}
    ${selectPart('Queue', queue, choices(names, queue), change('queue'))}
    ${show ? '' : selectPart('Code', code, choices(codes, code), change('code'))}
  </div>`;
}

function jobColumns(ui, now) {
  return [
    ['Job', ({ subject }) => (subject.namespace ? viewLink(['jobs', subject.namespace, subject.name], jobName(subject)) : jobName(subject))],
    ['Code', (it) => codePart(it.verdict.code)],
    ['Queue', ({ subject }) => (subject.queue ? viewLink(['queues', subject.queue]) : '–')],
    ['Place', ({ line }) => (line ? `${line.inQueue} of ${line.ofQueue}` : '–'), 'num'],
    ['Start (UTC)', ({ subject }) => (subject.namespace ? startCell(subject, ui, now) : '–'), 'num'],
    ['Waits for', (it) => duration(it.subject.waitingSeconds), 'num'],
    ['Why', (it) => html`<span title=${it.verdict.text}>${it.verdict.text}</span>`, 'wide'],
  ];
}

function runColumns(now) {
  return [
    ['Job', (it) => jobLink(it.job)], ['Queue', (it) => viewLink(['queues', it.queue])], 'pods num',
    ['Start (UTC)', (it) => timePart(it.start, now), 'num'], ['End (UTC)', (it) => timePart(it.end, now), 'num'],
    ['Known from', ({ source, runs }) => (runs ? `${source} from ${runs} runs` : source ?? '–')],
  ];
}

// Returns when a job starts, or `…`, and notes that its row is in the document.
function startCell({ namespace, name }, { starts, startPaths }, now) {
  const path = `${explanationPath([namespace, name])}&depth=quick`;
  startPaths.push(path);
  if (!starts.has(path)) return '…';
  const { expected, earliest, text } = starts.get(path).start ?? {};
  if (expected || !text) return timePart(expected, now);
  return earliest ? html`not before ${timePart(earliest, now)}` : html`<span title=${text}>not known</span>`;
}

// Asks for one start in sight: an unknown one, else the oldest. The drawing after a pause, as long as the answer took, asks again.
async function askNextStart({ store, ui, update }) {
  const timeOf = (path) => ui.starts.get(path)?.time ?? -1;
  const [path] = ui.startPaths.filter((it) => timeOf(it) !== ui.time).sort((l, r) => timeOf(l) - timeOf(r));
  if (!path || ui.isAskingStart || store.lostSince || document.hidden) return;
  ui.isAskingStart = true;
  const [begun, { time }] = [Date.now(), ui];
  await store.refresh(path);
  const answer = store.get(path);
  if (!store.lostSince && answer.problem?.code !== 429) ui.starts.set(path, { time, start: answer.document?.start });
  await new Promise((end) => setTimeout(end, Math.max(SHORTEST_PAUSE, Date.now() - begun, store.pausedUntil - Date.now())));
  ui.isAskingStart = false;
  update();
}
