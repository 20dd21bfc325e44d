// One job: where it stands, what would unblock it, what blocks it, its place, its start.
import { html } from './vendor/lit-html.js';
import { aheadText, amountsText, atomText, counted, duration, heldText, jobName, number, shortTime, visibleName } from './format.js';
import { answeredPart, codePart, factsPart, grantColumns, jobLink, sectionPart, tablePart, tableSection, timePart, titledTable, viewLink } from './parts.js';
import { explanationPath } from './jobs.js';
import { differencePart, resultText, sendChanges } from './whatif.js';

const DONE_CODES = ['Placed', 'Binding', 'NotOurs', 'Gone'];

export const jobView = {
  title: ({ parts }, store) => {
    const { document: it } = store.get(explanationPath(parts));
    return `Job ${it ? jobName(it.subject) : parts.join('/')}`;
  },
  wanted: ({ route }) => [explanationPath(route.parts)],
  body: (context) => html`<p>${viewLink(['jobs'], 'All jobs that wait')}</p>
    ${answeredPart(context.store.get(explanationPath(context.route.parts)), (it) => explanationPart(it, context))}`,
};

function explanationPart(it, context) {
  const { verdict, lastCondition } = it;
  return html`<p>${headPart(it)}</p>
    <div class="verdict"><p>${codePart(verdict.code)}: <bdi>${verdict.text}</bdi></p>
      ${verdict.also.length ? html`<p>Without this obstacle: ${verdict.also.map((code) => html`${codePart(code)} `)}</p>` : ''}
      ${lastCondition && html`<p class="quiet">Written in the PodGroup: ${lastCondition.reason}: ${lastCondition.message}</p>`}
    </div>
    ${sectionPart('What would unblock it', it.unblock && html`<ul class="remedies">${it.unblock.map((remedy) => remedyPart(it, remedy, context))}</ul>`)}
    ${sectionPart('What blocks it', it.blocking && blockedPart(it.blocking))}
    ${sectionPart('Nodes', it.nodes && nodesPart(it))}
    ${tableSection('Amounts on eligible nodes', shortColumns, it.short)}
    ${tableSection('Limits that it would exceed', quotaColumns, it.quota)}
    ${sectionPart('Members', it.gang && membersPart(it))}
    ${sectionPart('Place in the line', it.line && placePart(it))}
    ${sectionPart('Start', it.start && startPart(it.start, it.asOf.time))}
    ${sectionPart('Evictions for it', it.evict && evictPart(it.evict))}
    ${tableSection('Pods that were evicted', evictedColumns, it.evictions)}
    ${sectionPart('History', it.history && historyPart(it.history, it.asOf.time))}`;
}

function headPart({ subject, gang, pods, verdict }) {
  const waits = !DONE_CODES.includes(verdict.code);
  const words = subject.kind === 'Pod' ? ['pod'] : [
    ...(subject.pod ? [`pod ${subject.pod}`] : []), ...(subject.jobKind ? [subject.jobKind, `PodGroup ${subject.name}`] : ['PodGroup']),
  ];
  const queue = subject.queue && html`, queue ${viewLink(['queues', subject.queue])}, priority ${subject.priority}`;
  const time = subject.waitingSeconds === undefined ? 'waits' : `waits for ${duration(subject.waitingSeconds)}`;
  const members = gang ? gangText(gang) : pods && `pods ${pods}`;
  return html`<bdi>${jobName(subject)}</bdi> (<bdi>${words.join(', ')}</bdi>${queue}) ${waits ? time : 'does not wait'}${members && waits ? `: ${members}` : ''}.`;
}

function gangText(gang) {
  const ready = gang.ready ? `, ${gang.ready} with a node` : '';
  return `${counted(gang.total, 'pod')}, ${number(gang.needed)} needed${ready}, ${number(gang.placed)} placed`;
}

function blockedPart(blocking) {
  const { sets, complete, leftOut: parts = ['sets'] } = blocking;
  const leftOut = complete ? '' : ` Left out, as the search ended early: ${parts.join(', ')}.`;
  const none = complete || !parts.includes('sets') ? 'Not even empty nodes without all other obstacles would do.' : '';
  if (sets.length === 0) return html`<p>${none}${leftOut}</p>`;
  const lead = sets.length === 1 ? 'It would start without these obstacles; none of them may stay.' : 'It would start without any one of these:';
  const set = ({ atoms, certified }, at) => html`<li>${tablePart(`Obstacles, way ${at + 1}`, atomColumns, atoms)}
    <p class="quiet">Every ${certified === 'all' ? 'smaller set' : 'set with one obstacle less'} was tried and fails.</p></li>`;
  return html`<p>${lead}${blocking.helpsWaiting ? '' : ' Waiting alone does not help.'}${leftOut}</p>
    <ol>${sets.map(set)}</ol>`;
}

const atomColumns = [['Obstacle', (it) => atomText(it.atom)], ['Where', 'in'], 'nodes num', ['Who may change it', 'who']];

const shortColumns = [
  'resource', ['Needed', 'need', 'num'], 'free num', ['Usable by whole pods', 'usable', 'num'],
  ['Largest on one node', 'largest', 'num'], ['Short in total', 'short', 'num'], ['Short per pod', 'perPod', 'num'],
];

const quotaColumns = [
  'plugin', ['Queue', (it) => it.queue ?? (it.resourceQuota ? `ResourceQuota ${it.resourceQuota}` : 'the cluster')], 'limit', 'resource',
  ['Amount', (it) => it.amount ?? 'not shown', 'num'], ['Used', (it) => it.used ?? 'not shown', 'num'], 'asked num', 'short num',
];

const evictedColumns = [['Pod', (it) => visibleName(it.pod, 'pod')], ['PodGroup', (it) => jobLink(it.podGroup)], ...grantColumns];

function nodeLink(name, query) {
  return name === 'hidden' ? name : viewLink(['nodes', name], name, query);
}

export const lackColumns = [['Refused by', (it) => it.atoms.map(atomText).join(', ')], ['Lacks', (it) => amountsText(it.lacks) || '–']];

function nodesPart({ nodes, subject }) {
  const query = { for: `${subject.namespace}/${subject.name}` };
  return html`<p>${counted(nodes.total, 'node')}, ${number(nodes.eligible)} of them eligible: they lack room or nothing.</p>
    ${tablePart('Nodes by what refuses them', [
    ['What refuses them', (it) => it.text ?? lackColumns[0][1](it)], ['Nodes', 'count', 'num'],
    ['Names', (it) => html`${it.names.map((name) => html`${nodeLink(name, query)} `)}${it.names.length < it.count ? '…' : ''}`, 'names'],
  ], nodes.groups)}
    ${titledTable('Nodes that come closest', [['Node', (it) => nodeLink(it.name, query)], ...lackColumns], nodes.nearest)}`;
}

function membersPart({ gang, classes: failing }) {
  const pods = [['Each asks for', (it) => amountsText(it.request) || 'nothing'], ['Pods', 'count', 'num']];
  const placed = ['Find a place', 'placed', 'num'];
  const rest = ['needed num', ['With a node', 'ready', 'num'], placed];
  return html`<p>${gangText(gang)}.</p>${tablePart('Waiting pods by request', [...pods, placed], gang.pods)}${tablePart('Roles with a minimum', ['role', ...rest], gang.roles)}${tablePart('Sub-groups', ['name', ...rest], gang.subGroups)}
    ${titledTable('Further pods that find no place', [...pods, ['Code', (it) => codePart(it.code)], ['Why', 'text']], failing)}`;
}

function rank(place) {
  return place + (['st', 'nd', 'rd'][((place + 90) % 100 - 10) % 10 - 1] ?? 'th');
}

function placePart({ line, subject }) {
  const { ahead } = line;
  const neighbour = (word, it) => it && html`<li>${word} ${jobLink(it.job)}, by ${it.text ?? it.decidedBy}</li>`;
  const ofFirst = ahead.tried < ahead.jobs ? ` of the first ${ahead.tried}` : '';
  const blocked = ahead.blocked ? `, ${ahead.blocked}${ofFirst} cannot start now either` : '';
  return html`<p>Place ${number(line.inQueue)} of ${number(line.ofQueue)}${subject.queue && html` in queue ${viewLink(['queues', subject.queue])}`};
      ${rank(line.queueTurn)} queue if a cycle began now.</p>
    <ul>
      ${neighbour('Behind', line.before)}${neighbour('Before', line.behind)}
      ${ahead.jobs ? html`<li>Ahead: ${aheadText(ahead)}${blocked}</li>` : ''}
    </ul>`;
}

function startPart(start, now) {
  const time = (text, value, isNews = value !== start.expected) => (value && isNews ? html`<li>${text} ${timePart(value, now)} UTC.</li>` : '');
  return html`<ul>
      ${time('If nothing arrives, expected', start.expected, true)}
      ${time('Not before', start.earliest)}
      ${time('Not after', start.latest)}
      ${start.text && html`<li>${start.expected || start.earliest ? '' : 'Not known: '}${start.text}.</li>`}
      ${[start.earliestUnknown, start.latestUnknown].map((it) => it && html`<li>${it.text}.</li>`)}
      ${start.held && html`<li>${heldText(start.held)}</li>`}
    </ul>
    ${titledTable('It waits for the end of', [
    ['Job', (it) => jobLink(it.job)], 'pods num', ['Nodes', (it) => it.nodes.join(' ') || '–'],
    ['Ends (UTC)', (it) => timePart(it.end, now), 'num'], ['Known from', 'source'], 'runs num',
  ], start.waitsFor)}`;
}

function evictPart(evict) {
  const rows = evict.actions.flatMap((it) => it.causes.map((cause) => ({ action: it.action, ...cause })));
  return html`<p>Evicted: ${evict.text}.</p>
    ${evict.compared && html`<ul>${evict.compared.map((text) => html`<li>${text}</li>`)}</ul>`}
    ${evict.remedy && html`<p><strong>What helps:</strong> ${evict.remedy}</p>`}${tablePart('Why nobody was evicted', ['action', ['Number', 'count', 'num'], ['Of', 'countedIn'], ['Cause', 'text'], 'plugin'], rows)}`;
}

function historyPart(history, now) {
  const time = (name) => history[name] && timePart(history[name], now);
  return factsPart([
    ['Created (UTC)', time('created')], ['Admitted', time('admitted')], ['First pod bound', time('firstBind')],
    ['Pods on nodes', history.onNodes], ['Pods that ended', history.ended], ['Pods evicted', history.evicted], ['Last eviction', time('lastEviction')],
  ]);
}

function remedyPart(it, remedy, context) {
  const changes = remedy.changes ?? (remedy.change ? [remedy.change] : []);
  const key = `${it.subject.namespace}/${it.subject.name} ${JSON.stringify(changes)}`;
  const tried = context.ui.tries[key];
  const canTry = changes.length && !context.store.isFile;
  return html`<li>
    <div class="remedy"><span class="who">${remedy.who}</span>
      <span class="remedy-text">${remedy.text}${remedy.at ? ` (${shortTime(remedy.at, it.asOf.time)} UTC)` : ''}${nodeNames(remedy.nodes)}</span>
      ${canTry ? html`<button type="button" aria-disabled=${Boolean(tried?.isPending)} aria-label="Try: ${remedy.text}"
        @click=${() => tryRemedy(key, it, { ...remedy, changes }, context)}>${tried?.isPending ? 'Trying …' : 'Try'}</button>` : ''}
    </div>
    ${tried && !tried.isPending ? html`<div class="result">${differencePart(tried)}</div>` : ''}
  </li>`;
}

function nodeNames(nodes) {
  return nodes && html`, then on ${nodes.map((name, at) => html`${at ? ', ' : ''}${viewLink(['nodes', name])}`)}`;
}

async function tryRemedy(key, it, remedy, { store, ui, update, announce }) {
  if (ui.tries[key]?.isPending) return;
  ui.tries[key] = { isPending: true };
  update();
  const answer = await sendChanges(store, remedy.changes, it.subject.namespace);
  ui.tries[key] = answer;
  announce(`${remedy.text}: ${resultText(answer)}`);
  update();
}
