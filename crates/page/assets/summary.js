// The first view: sums over the cluster, why jobs wait, the last cycles.
import { html } from './vendor/lit-html.js';
import { heldText, percent, sortedResources } from './format.js';
import { answeredPart, barPart, codePart, factsPart, sectionPart, tablePart, tableSection, timePart, viewLink } from './parts.js';

const CYCLES_PATH = '/cycles?last=20';

export const summaryView = {
  title: () => 'Summary',
  wanted: () => ['/summary', CYCLES_PATH],
  body: ({ store }) => html`${answeredPart(store.get('/summary'), sumsPart)}${sectionPart('Last cycles', answeredPart(store.get(CYCLES_PATH), cyclesTable))}`,
};

function sumsPart(sums) {
  const counts = [
    [viewLink(['nodes'], 'Nodes'), sums.nodes], [viewLink(['queues'], 'Queues'), sums.queues], ['Jobs', sums.jobs],
    [viewLink(['jobs'], 'Jobs that wait'), sums.totalWaiting], ['Pods', sums.totalPods],
  ];
  return html`${factsPart(counts, 'counts')}
    ${sums.held && html`<p>Starts: ${heldText(sums.held)}</p>`}
    <div class="columns">
      ${sectionPart('Why jobs wait', countTable('Code', 'Jobs', sums.waiting, codeLink, 'No job waits.'))}
      ${sectionPart('Pods by status', countTable('Status', 'Pods', sums.pods, ([status]) => status, 'There are no pods.'))}
    </div>${usedTable(sums)}`;
}

function codeLink([code]) {
  return viewLink(['jobs'], codePart(code), { code });
}

function countTable(names, nouns, counts, name, empty) {
  const rows = Object.entries(counts).sort((l, r) => r[1] - l[1]);
  const scale = [['scale', String(rows[0]?.[1])]];
  return tablePart(`${nouns} by ${names.toLowerCase()}`, [
    [names, name], [nouns, (row) => row[1], 'num'], ['', (row) => barPart(String(row[1]), scale), 'bar-cell'],
  ], rows, empty);
}

function usedTable({ allocatable, used, usedPercent }) {
  return tableSection('What pods use', [
    ['Resource', (name) => name], ['Used', (name) => used[name] ?? '0', 'num'], ['Allocatable', (name) => allocatable[name], 'num'],
    ['Part', (name) => percent(usedPercent[name]), 'num'], ['', (name) => barPart(used[name], [['scale', allocatable[name]]]), 'bar-cell'],
  ], sortedResources(Object.keys(allocatable)), 'There are no nodes.');
}

function cyclesTable({ asOf, items }) {
  return tablePart('Last cycles', [
    'cycle', ['Time (UTC)', (row) => timePart(row.time, asOf.time)], ['Took, µs', 'micros', 'num'], 'events num',
    'binds num', 'evictions num', 'waiting num',
  ], items, 'No cycle yet.');
}
