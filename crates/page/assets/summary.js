// The first view: sums over the cluster, why jobs wait, the last cycles.
import { html, nothing } from './vendor/lit-html.js';
import { heldText, number, percent, sortedResources, viewAddress } from './format.js';
import { answeredPart, barPart, codePart, isMissingRoute, sectionPart, tablePart, tableSection, timePart, viewLink } from './parts.js';

const CYCLES_PATH = '/cycles?last=20';

export const summaryView = {
  title: () => 'Summary',
  wanted: () => ['/summary', CYCLES_PATH],
  body: ({ store }) => html`${answeredPart(store.get('/summary'), sumsPart)}${cyclesPart(store.get(CYCLES_PATH), store.isFile)}`,
};

function sumsPart(sums) {
  const count = (name, value) => html`<div><dt>${name}</dt><dd>${number(value)}</dd></div>`;
  return html`<dl class="counts">
      ${count(viewLink(['nodes'], 'Nodes'), sums.nodes)}${count(viewLink(['queues'], 'Queues'), sums.queues)}${count('Jobs', sums.jobs)}
      ${count(viewLink(['jobs'], 'Jobs that wait'), sums.totalWaiting)}${count('Pods', sums.totalPods)}
    </dl>
    ${sums.held ? html`<p>Starts: ${heldText(sums.held)}</p>` : nothing}
    <div class="columns">
      ${sectionPart('Why jobs wait', countTable('Code', 'Jobs', sums.waiting, codeLink, 'No job waits.'))}
      ${sectionPart('Pods by status', countTable('Status', 'Pods', sums.pods, ([status]) => status, 'There are no pods.'))}
    </div>
    ${usedTable(sums)}`;
}

function codeLink([code]) {
  return html`<a href=${viewAddress(['jobs'], { code })}>${codePart(code)}</a>`;
}

function countTable(names, nouns, counts, name, empty) {
  const rows = Object.entries(counts ?? {}).sort((l, r) => r[1] - l[1]);
  const scale = [['scale', String(rows[0]?.[1])]];
  return tablePart(`${nouns} by ${names.toLowerCase()}`, [
    [names, name], [nouns, (row) => row[1], 'num'], ['', (row) => barPart(String(row[1]), scale), 'bar-cell'],
  ], rows, empty);
}

function usedTable({ allocatable = {}, used = {}, usedPercent = {} }) {
  return tableSection('What pods use', [
    ['Resource', (name) => name],
    ['Used', (name) => used[name] ?? '0', 'num'],
    ['Allocatable', (name) => allocatable[name], 'num'],
    ['Part', (name) => percent(usedPercent[name]), 'num'],
    ['', (name) => barPart(used[name], [['scale', allocatable[name]]]), 'bar-cell'],
  ], sortedResources(Object.keys(allocatable)), 'There are no nodes.');
}

function cyclesPart(entry, isFile) {
  if (isFile && !entry.document) return nothing;
  const missing = html`<p class="quiet">This version does not list its cycles.</p>`;
  return sectionPart('Last cycles', isMissingRoute(entry) ? missing : answeredPart(entry, cyclesTable));
}

function cyclesTable({ asOf, items }) {
  return tablePart('Last cycles', [
    'cycle', ['Time (UTC)', (row) => timePart(row.time, asOf?.time)], ['Took, µs', 'micros', 'num'], 'events num',
    'binds num', 'evictions num', 'waiting num',
  ], items, 'No cycle yet.');
}
