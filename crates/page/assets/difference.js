// What-if questions, and the difference that changes make.
import { html, nothing } from './vendor/lit-html.js';
import { counted, number, shareText, visibleName } from './format.js';
import { codePart, grantColumns, isMissingRoute, jobLink, problemPart, titledTable } from './parts.js';

/** Returns a document with these changes as text. A line of JSON is YAML, too. */
export function whatIfText(changes) {
  const lines = changes.map((change) => Object.entries(change).map(([kind, fields]) => `  - ${kind}: ${JSON.stringify(fields)}`).join('\n'));
  return ['apiVersion: answers.volcano.sh/v1', 'kind: WhatIf', 'spec:', '  changes:', ...lines, '  cycles: settled', ''].join('\n');
}

/** Sends changes for the cluster, or for one namespace if only that is permitted. */
export async function sendChanges(store, changes, namespace) {
  const text = whatIfText(changes);
  const answer = await sendDocument(store, text);
  return answer.problem?.code === 403 && namespace ? sendDocument(store, text, namespace) : answer;
}

/** Sends the text of a document, for one namespace if one is given. */
export function sendDocument(store, text, namespace) {
  return store.send(namespace ? `/namespaces/${encodeURIComponent(namespace)}/whatifs` : '/whatifs', text);
}

export function resultText({ document: result, problem }) {
  if (problem) return problem.sentence;
  const count = (name) => number(result.truncated?.[name] ?? result[name]?.length ?? 0);
  const cycles = `${counted(result.cycles, 'cycle')}, ${result.settled ? 'settled' : 'not settled'}`;
  return `${count('placed')} placed, ${count('evicted')} evicted, ${count('waiting')} wait (${cycles})`;
}

export function differencePart(answer) {
  if (isMissingRoute(answer)) return html`<p class="quiet">This version does not answer what-if questions.</p>`;
  if (answer.problem) return problemPart(answer.problem);
  const result = answer.document;
  const { unplaced = [], warnings = [] } = result;
  const rows = (name, sign, caption, columns) => differenceTable(result, name, caption, [
    ['Pod', (it) => html`<span class="quiet">${sign}</span> ${visibleName(it.pod, 'pod')}`], ['PodGroup', (it) => jobLink(it.podGroup)], ...columns]);
  return html`<p><strong>${resultText(answer)}</strong>${result.complete === false ? ' Not complete: the search ended early.' : ''}</p>
    ${rows('placed', '+ placed', 'Placed with the changes only', ['node'])}
    ${rows('notPlaced', '− placed', 'Placed without the changes only', ['node'])}
    ${rows('moved', '~ moved', 'On another node', [['Without', 'from'], ['With', 'to']])}
    ${rows('evicted', '+ evicted', 'Evicted with the changes only', grantColumns)}
    ${rows('spared', '− evicted', 'Evicted without the changes only', grantColumns)}
    ${differenceTable(result, 'waiting', 'Jobs that wait with the changes', waitingColumns)}
    ${differenceTable(result, 'queues', 'Queues', queueColumns, queueRows(result))}
    ${unplaced.length ? html`<p>Without a node: ${unplaced.map((pod) => visibleName(pod, 'pod')).join(', ')}</p>` : nothing}
    ${warnings.length ? html`<ul>${warnings.map((text) => html`<li>Note: ${text}</li>`)}</ul>` : nothing}`;
}

const waitingColumns = [['Job', (it) => jobLink(it.job || it.podGroup)], ['Code', (it) => codePart(it.code)], ['Why', 'text']];
const queueColumns = ['queue', ['Amount', 'name'], ['Without', (it) => it.pair[0], 'num'], ['With', (it) => it.pair[1], 'num']];

function differenceTable(result, name, caption, columns, rows = result[name] ?? []) {
  const all = result.truncated?.[name];
  return titledTable(all ? `${caption} (${number(result[name].length)} of ${number(all)} are listed)` : caption, columns, rows);
}

function queueRows({ queues = [] }) {
  return queues.flatMap(({ queue, allocated = {}, share }) => [
    ...Object.entries(allocated).map(([name, pair]) => ({ queue, name, pair })),
    ...(share ? [{ queue, name: 'share', pair: share.map(shareText) }] : []),
  ]);
}
