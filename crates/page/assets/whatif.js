// What-if questions: a form for the usual changes, a text for all, and the difference that they make.
import { html } from './vendor/lit-html.js';
import { counted, number, shareText, visibleName } from './format.js';
import { chosenPart, codePart, grantColumns, jobLink, problemPart, sectionPart, textPart, titledTable } from './parts.js';

const words = (text) => text.split(/[\s,]+/).filter(Boolean);
const changeNodes = (kind) => ({ names }) => ({ [kind]: { names: words(names) } });

// Fields of the form: label, example, choices. Without an example it may be empty.
const changeFields = {
  like: ['Like node', 'g1'], count: ['Number', '1'], names: ['Nodes', 'g1 g2'], queue: ['Queue', 'research'],
  field: ['Field', '', ['capability', 'deserved', 'guarantee']], resource: ['Resource', 'nvidia.com/gpu'], amount: ['Amount', '4'],
  weight: ['Weight', '1'], job: ['Job', 'namespace/name'], priorityClassName: ['Priority class', 'high'], minMember: ['Minimum', '1'],
  key: ['Key', 'team'], value: ['Value', ''], effect: ['Effect', '', ['NoSchedule', 'NoExecute', 'PreferNoSchedule']], duration: ['Duration', '30m'],
};

// Forms: label, fields, and the change of a document that their values make.
const changeForms = {
  addNodes: ['Add nodes', 'like count', ({ like, count }) => ({ addNodes: { like, count: Number(count) } })],
  removeNodes: ['Remove nodes', 'names', changeNodes('removeNodes')],
  cordon: ['Cordon nodes', 'names', changeNodes('cordon')],
  uncordon: ['Uncordon nodes', 'names', changeNodes('uncordon')],
  amount: ['Set an amount of a queue', 'queue field resource amount',
    ({ queue, field, resource, amount }) => ({ setQueue: { name: queue, [field]: { [resource]: amount } } })],
  weight: ['Set the weight of a queue', 'queue weight', ({ queue, weight }) => ({ setQueue: { name: queue, weight: Number(weight) } })],
  priority: ['Set the priority class of a job', 'job priorityClassName', (values) => ({ setJob: values })],
  minimum: ['Set the minimum of a job', 'job minMember', ({ job, minMember }) => ({ setJob: { job, minMember: Number(minMember) } })],
  request: ['Set a request of the pods of a job', 'job resource amount',
    ({ job, resource, amount }) => ({ setPods: { job, requests: { [resource]: amount } } })],
  tolerate: ['Let the pods of a job tolerate a taint', 'job key value effect', ({ job, ...taint }) => ({ setPods: { job, tolerations: [taint] } })],
  finish: ['Let a job end', 'job', ({ job }) => ({ finish: { jobs: [job] } })],
  advance: ['Let time pass', 'duration', ({ duration }) => ({ advance: duration })],
};

export const whatIfView = {
  title: () => 'What if',
  wanted: () => ['/summary'],
  body: (context) => {
    const { ui } = context;
    ui.whatIfText ??= whatIfText([]);
    const answer = ui.whatIfAnswer ? differencePart(ui.whatIfAnswer) : html`<p class="quiet">Nothing was asked yet.</p>`;
    return html`<p>The scheduler decides about a copy of the cluster with the changes and without. Nothing happens in the cluster.</p>
      ${sectionPart('Add a change', changeForm(context))}${sectionPart('The document', documentForm(context))}${sectionPart('The difference', answer)}`;
  },
};

function changeForm(context) {
  const { ui, update, announce } = context;
  const kind = ui.changeKind ?? 'addNodes';
  const [label, fields, change] = changeForms[kind];
  const submitted = (event) => {
    event.preventDefault();
    const values = [...new FormData(event.target)].map(([key, value]) => [key, value.trim()]);
    ui.whatIfText = textWithChange(ui.whatIfText, change(Object.fromEntries(values)));
    announce(`${label}: added to the document.`);
    update();
  };
  const options = Object.entries(changeForms).map(([key, it]) => [key, it[0]]);
  return html`<form class="fields" @submit=${submitted}>
    ${chosenPart(context, 'changeKind', 'Change', kind, options)}${fields.split(' ').map(fieldPart)}
    <button type="submit">Add</button></form>`;
}

function fieldPart(name) {
  const [label, example, choices] = changeFields[name];
  const field = choices
    ? html`<select name=${name}>${choices.map((it) => html`<option>${it}</option>`)}</select>`
    : html`<input name=${name} placeholder=${example} ?required=${example !== ''} autocomplete="off">`;
  return html`<label class="field">${label} ${field}</label>`;
}

// Returns the text of a document with one more change behind the others.
function textWithChange(text, change) {
  const line = whatIfText([change]).split('\n')[4];
  const at = text.search(/^ {2}(cycles|kubelet):/m);
  return at < 0 ? `${text.trimEnd()}\n${line}\n` : `${text.slice(0, at)}${line}\n${text.slice(at)}`;
}

function documentForm(context) {
  const { ui, update } = context;
  const cleared = () => { ui.whatIfText = whatIfText([]); ui.whatIfAnswer = null; update(); };
  const submitted = (event) => { event.preventDefault(); evaluate(context); };
  return html`<form @submit=${submitted}>
    <label class="field block">Changes as YAML or JSON, in order
      <textarea rows="10" .value=${ui.whatIfText} @input=${(event) => { ui.whatIfText = event.target.value; }}></textarea></label>
    <p class="quiet">There are also apply, delete, patchNodes and conf, and further fields of setQueue, setJob and setPods.</p>
    <div class="fields">
      ${textPart('Ask with the rights of one namespace', ui.whatIfNamespace, (value) => { ui.whatIfNamespace = value; }, 'whole cluster')}
      <button type="submit" class="main-action" aria-disabled=${Boolean(ui.isEvaluating)}>${ui.isEvaluating ? 'Evaluating …' : 'Evaluate'}</button>
      <button type="button" @click=${cleared}>Clear</button>
    </div></form>`;
}

async function evaluate({ store, ui, update, announce }) {
  if (ui.isEvaluating) return;
  ui.isEvaluating = true;
  update();
  ui.whatIfAnswer = await sendDocument(store, ui.whatIfText, ui.whatIfNamespace);
  ui.isEvaluating = false;
  announce(resultText(ui.whatIfAnswer));
  update();
}

// Returns a document with these changes as text. A line of JSON is YAML, too.
function whatIfText(changes) {
  const lines = changes.map((change) => `  - ${JSON.stringify(change)}`);
  return ['apiVersion: answers.volcano.sh/v1', 'kind: WhatIf', 'spec:', '  changes:', ...lines, '  cycles: settled', ''].join('\n');
}

// Sends changes for the cluster, or for one namespace if only that is permitted.
export async function sendChanges(store, changes, namespace) {
  const text = whatIfText(changes);
  const answer = await sendDocument(store, text);
  return answer.problem?.code === 403 && namespace ? sendDocument(store, text, namespace) : answer;
}

function sendDocument(store, text, namespace) {
  return store.send(namespace ? `/namespaces/${encodeURIComponent(namespace)}/whatifs` : '/whatifs', text);
}

export function resultText({ document: result, problem }) {
  if (problem) return problem.sentence;
  const count = (name) => number(result.truncated?.[name] ?? result[name]?.length ?? 0);
  const cycles = `${counted(result.cycles, 'cycle')}, ${result.settled ? 'settled' : 'not settled'}`;
  return `${count('placed')} placed, ${count('evicted')} evicted, ${count('waiting')} wait (${cycles})`;
}

export function differencePart(answer) {
  if (answer.problem) return problemPart(answer.problem);
  const result = answer.document;
  const { unplaced, warnings } = result;
  const rows = (name, sign, caption, columns) => differenceTable(result, name, caption, [
    ['Pod', (it) => html`<span class="quiet">${sign}</span> ${visibleName(it.pod, 'pod')}`], ['PodGroup', (it) => jobLink(it.podGroup)], ...columns]);
  const leftOut = (result.leftOut ?? []).map(({ what, most }) => `; ${what} after the first ${number(most)} were left out`);
  return html`<p><strong>${resultText(answer)}</strong>${result.complete === false ? ` Not complete${leftOut.join('')}.` : ''}</p>
    ${rows('placed', '+ placed', 'Placed with the changes only', ['node'])}
    ${rows('notPlaced', '− placed', 'Placed without the changes only', ['node'])}
    ${rows('moved', '~ moved', 'On another node', [['Without', 'from'], ['With', 'to']])}
    ${rows('evicted', '+ evicted', 'Evicted with the changes only', grantColumns)}
    ${rows('spared', '− evicted', 'Evicted without the changes only', grantColumns)}
    ${differenceTable(result, 'waiting', 'Jobs that wait with the changes', waitingColumns)}
    ${differenceTable(result, 'queues', 'Queues', queueColumns, queueRows(result))}
    ${unplaced && html`<p>Without a node: ${unplaced.map((pod) => visibleName(pod, 'pod')).join(', ')}</p>`}
    ${warnings && html`<ul>${warnings.map((text) => html`<li>Note: ${text}</li>`)}</ul>`}`;
}

const waitingColumns = [['Job', (it) => jobLink(it.job || it.podGroup)], ['Code', (it) => codePart(it.code)], ['Why', 'text']];
const queueColumns = ['queue', ['Amount', 'name'], ['Without', (it) => it.pair[0], 'num'], ['With', (it) => it.pair[1], 'num']];

function differenceTable(result, name, caption, columns, rows = result[name]) {
  const all = result.truncated?.[name];
  return titledTable(all ? `${caption} (${number(result[name].length)} of ${number(all)} are listed)` : caption, columns, rows);
}

function queueRows({ queues = [] }) {
  return queues.flatMap(({ queue, allocated = {}, share }) => [
    ...Object.entries(allocated).map(([name, pair]) => ({ queue, name, pair })),
    ...(share ? [{ queue, name: 'share', pair: share.map(shareText) }] : []),
  ]);
}
