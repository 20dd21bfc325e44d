// Queues as a tree with what they hold and may hold, and one queue with its line.
import { html, nothing } from './vendor/lit-html.js';
import { aheadText, duration, number, orderText, shareText, sortedResources } from './format.js';
import { amountColumns, answeredPart, chosenPart, codePart, jobLink, listPaths, listTable, markLegend, queueBar, rowsTable, sectionPart, tablePart, tableSection, viewLink } from './parts.js';

const AMOUNTS = ['allocated', 'deserved', 'guarantee', 'capability'];
const queuePath = (name) => `/queues/${encodeURIComponent(name)}`;
const linePath = (name) => (range) => `${queuePath(name)}/line?${range}`;

export const queuesView = {
  title: ({ parts }) => (parts[0] ? `Queue ${parts[0]}` : 'Queues'),
  wanted: (context) => {
    const [name] = context.route.parts;
    return name ? [queuePath(name), ...listPaths(context, `line ${name}`, linePath(name))] : ['/queues'];
  },
  body: (context) => (context.route.parts[0] ? queuePart(context, context.route.parts[0]) : treePart(context)),
};

/** Returns the queues in tree order with their depths. Circles of parents end. */
function queueTree(queues) {
  const names = new Set(queues.map((queue) => queue.name));
  const below = new Map();
  for (const queue of queues) {
    const parent = names.has(queue.parent) && queue.parent !== queue.name ? queue.parent : '';
    if (!below.has(parent)) below.set(parent, []);
    below.get(parent).push(queue);
  }
  const rows = [];
  const seen = new Set();
  const visit = (queue, depth) => {
    if (seen.has(queue.name)) return;
    seen.add(queue.name);
    rows.push({ ...queue, depth });
    (below.get(queue.name) ?? []).forEach((child) => visit(child, depth + 1));
  };
  (below.get('') ?? []).forEach((queue) => visit(queue, 0));
  queues.forEach((queue) => visit(queue, 0));
  return rows;
}

function resourcesOf(queues) {
  return sortedResources(queues.flatMap((queue) => AMOUNTS.flatMap((name) => Object.keys(queue[name] ?? {}))));
}

function treePart(context) {
  const { store, ui } = context;
  return answeredPart(store.get('/queues'), (list) => {
    const resources = resourcesOf(list.items);
    const resource = resources.includes(ui.resource) ? ui.resource : resources[0] ?? '';
    const rows = queueTree(list.items);
    const columns = [
      ['Queue', queueName], 'state', 'waiting num', 'jobs num',
      [resource || 'Amounts', (queue) => queueBar(queue, resource), 'bar-cell'],
      ...amountColumns(AMOUNTS, (queue, name) => queue[name]?.[resource]),
      ['Share', (queue) => shareText(queue.share), 'num'],
    ];
    return html`<div class="fields">${chosenPart(context, 'resource', 'Resource', resource, resources)}${markLegend()}</div>
      <p class="quiet">Each bar is as long as the largest amount of its row.</p>
      ${rowsTable(context, `Queues and their ${resource}`, columns, rows, 'queues')}`;
  });
}

function queueName(queue) {
  const below = queue.parent ? html`<span class="hidden"> below ${queue.parent}</span>` : nothing;
  return html`<svg width=${16 * Math.min(queue.depth, 8)} height="1" aria-hidden="true"></svg>${viewLink(['queues', queue.name])}${below}`;
}

function queuePart(context, name) {
  const line = answeredPart(context.store.get(linePath(name)('offset=0&limit=100')), (list) => listTable(context, list, {
    name: `line ${name}`, caption: `Jobs that wait in queue ${name}`, columns: lineColumns, pathOf: linePath(name), empty: 'Nothing waits.',
  }));
  return html`<p>${viewLink(['queues'], 'All queues')}</p>
    ${answeredPart(context.store.get(queuePath(name)), queueDetails)}${sectionPart('The line', line)}`;
}

const lineColumns = [
  ['Job', (row) => jobLink(row.job)], 'place num', 'priority num', 'pods num',
  ['Waits for', (row) => duration(row.waitingSeconds), 'num'], ['Code', (row) => codePart(row.code)],
  ['Decided by', orderText], ['Ahead', (row) => (row.ahead?.jobs ? aheadText(row.ahead) : '–')],
];

function queueDetails(queue) {
  const fact = (name, value) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`;
  const amounts = tablePart(`Amounts of queue ${queue.name}`, [
    ['Resource', (name) => name], ['', (name) => queueBar(queue, name), 'bar-cell'],
    ...amountColumns(AMOUNTS, (resource, name) => queue[name]?.[resource]),
  ], resourcesOf([queue]), 'The queue holds nothing and has no limit.');
  const quota = ['resource', 'nominal num', 'used num', 'borrowed num', 'lent num', 'available num'];
  return html`<dl class="facts">
      ${fact('State', queue.state)}${queue.parent ? fact('Parent', viewLink(['queues', queue.parent])) : nothing}
      ${fact('Waiting', `${number(queue.waiting)} of ${number(queue.jobs)} jobs`)}
      ${fact('Weight', number(queue.weight))}${fact('Priority', number(queue.priority))}${fact('Share', shareText(queue.share))}
    </dl>
    ${sectionPart('Amounts', html`${markLegend()}${amounts}`)}
    ${tableSection('Quota', quota, queue.quota)}`;
}
