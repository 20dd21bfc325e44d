// Queues as a tree with what they hold and may hold, and one queue with its line.
import { html } from './vendor/lit-html.js';
import { aheadText, duration, number, shareText, sortedResources } from './format.js';
import { amountColumns, answeredPart, chosenPart, codePart, factsPart, jobLink, listPart, listPaths, markLegend, queueBar, rowsTable, sectionPart, tablePart, tableSection, viewLink } from './parts.js';

const AMOUNTS = ['allocated', 'deserved', 'guarantee', 'capability'];
const queuePath = (name) => `/queues/${encodeURIComponent(name)}`;
const linePath = (name) => (range) => `${queuePath(name)}/line?${range}`;

export const queuesView = {
  title: ({ parts }) => (parts[0] ? `Queue ${parts[0]}` : 'Queues'),
  wanted: (context) => {
    const [name] = context.route.parts;
    return name ? [queuePath(name), ...listPaths(context, linePath(name))] : ['/queues'];
  },
  body: (context) => (context.route.parts[0] ? queuePart(context, context.route.parts[0]) : treePart(context)),
};

// Returns queues, each behind its parent, with their depths.
function queueTree(queues) {
  const depths = new Map();
  return queues.map((queue) => {
    const depth = (depths.get(queue.parent) ?? -1) + 1;
    depths.set(queue.name, depth);
    return { ...queue, depth };
  });
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
  const below = queue.parent && html`<span class="hidden"> below ${queue.parent}</span>`;
  return html`${'\u2003'.repeat(Math.min(queue.depth, 8))}${viewLink(['queues', queue.name])}${below}`;
}

function queuePart(context, name) {
  const line = listPart(context, linePath(name), () => ({ caption: `Jobs that wait in queue ${name}`, columns: lineColumns }));
  return html`<p>${viewLink(['queues'], 'All queues')}</p>
    ${answeredPart(context.store.get(queuePath(name)), queueDetails)}${sectionPart('The line', line)}`;
}

const lineColumns = [
  ['Job', (row) => jobLink(row.job)], 'place num', 'priority num', 'pods num',
  ['Waits for', (row) => duration(row.waitingSeconds), 'num'], ['Code', (row) => codePart(row.code)],
  ['Decided by', (row) => row.text ?? row.decidedBy ?? '–'], ['Ahead', (row) => (row.ahead?.jobs ? aheadText(row.ahead) : '–')],
];

function queueDetails(queue) {
  const amounts = tablePart(`Amounts of queue ${queue.name}`, [
    ['Resource', (name) => name], ['', (name) => queueBar(queue, name), 'bar-cell'],
    ...amountColumns(AMOUNTS, (resource, name) => queue[name]?.[resource]),
  ], resourcesOf([queue]), 'The queue holds nothing and has no limit.');
  const quota = ['resource', 'nominal num', 'used num', 'borrowed num', 'lent num', 'available num'];
  return html`${factsPart([
    ['State', queue.state], ['Parent', queue.parent && viewLink(['queues', queue.parent])],
    ['Waiting', `${number(queue.waiting)} of ${number(queue.jobs)} jobs`],
    ['Weight', queue.weight], ['Priority', queue.priority], ['Share', shareText(queue.share)],
  ])}
    ${sectionPart('Amounts', html`${markLegend()}${amounts}`)}
    ${tableSection('Quota', quota, queue.quota)}`;
}
