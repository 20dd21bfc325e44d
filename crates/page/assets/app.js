// The page: which view is shown, what is asked for it, when it is asked again.
//
// A report joins the modules into one script. So imports are named, without `as`, a line each; exports stand before
// a declaration; a name at the top level of a module is in no other module.
import { html, render, nothing } from './vendor/lit-html.js';
import { duration, number, shortTime } from './format.js';
import { AnswerStore } from './answers.js';
import { summaryView } from './summary.js';
import { queuesView } from './queues.js';
import { jobsView } from './jobs.js';
import { jobView } from './job.js';
import { nodesView } from './nodes.js';
import { timelineView } from './timeline.js';
import { whatIfView } from './whatif.js';

const POLL_MILLIS = 2000;
const NARROWEST = 280;
const views = {
  summary: ['Summary', summaryView], queues: ['Queues', queuesView], jobs: ['Jobs', jobsView], nodes: ['Nodes', nodesView],
  timeline: ['Timeline', timelineView], whatif: ['What if', whatIfView],
};

const store = new AnswerStore();
if (store.isFile) delete views.whatif;
const ui = { windows: {}, tries: {}, starts: new Map() };
const pending = new Set();
const page = { route: readRoute(), width: NARROWEST, timer: 0, isDrawing: false, wasLost: false, told: '' };

// Returns the view and what the hash says about it: `#/jobs/ml/train?queue=research`.
function readRoute() {
  const [path, query = ''] = location.hash.replace(/^#\/?/, '').split('?');
  const parts = path.split('/').filter(Boolean).map(decodedPart);
  const name = views[parts[0]] ? parts[0] : 'summary';
  return { name, parts: parts.slice(1), query: Object.fromEntries(new URLSearchParams(query)) };
}

function decodedPart(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function currentView() {
  const { name, parts } = page.route;
  return name === 'jobs' && parts.length === 2 ? jobView : views[name][1];
}

function go(address) {
  location.hash = address;
}

function announce(text) {
  document.getElementById('changes').textContent = text;
}

function viewContext() {
  return { store, ui, route: page.route, width: page.width, update, go, announce };
}

// Draws the page soon; several calls draw it once.
function update() {
  if (page.isDrawing) return;
  page.isDrawing = true;
  queueMicrotask(() => { page.isDrawing = false; draw(); });
}

function draw() {
  const view = currentView();
  const context = viewContext();
  const title = view.title(page.route, store);
  document.title = `${title} – vc-scheduler`;
  render(pagePart(title, store.needsToken ? tokenPart() : view.body(context)), document.getElementById('page'));
  if (store.needsToken) return;
  view.drawn?.(context);
  if (!store.lostSince) ask(wantedPaths().filter((path) => !store.entries.has(path)));
}

function pagePart(title, body) {
  return html`<button type="button" class="skip" @click=${() => document.getElementById('title').focus()}>Skip to content</button>
    <header><div class="bar-top"><span class="product">vc-scheduler</span>${statusPart()}</div>
      <nav aria-label="Views"><ul>${Object.entries(views).map(navigationItem)}</ul></nav></header>
    <main id="content"><h1 id="title" tabindex="-1">${title}</h1>${body}</main>
    <footer>The same answers in a terminal: <code>kubectl vc</code>. ${store.asOf ? `Version ${store.asOf.version}.` : ''}</footer>`;
}

function navigationItem([name, [text]]) {
  return html`<li><a href="#/${name}" aria-current=${page.route.name === name ? 'page' : nothing}>${text}</a></li>`;
}

// Returns what the numbers of the page are of, or for how long nobody has answered.
function statusPart() {
  const { asOf, lostSince, needsToken } = store;
  if (lostSince) {
    const age = duration((Date.now() - lostSince) / 1000);
    return html`<p class="status lost">▲ The scheduler has not answered for ${age}.${asOf ? ' What is shown is as old.' : ''}</p>`;
  }
  if (!asOf || needsToken) return '';
  const from = asOf.behindMillis === undefined ? 'from a file' : `${number(asOf.behindMillis)} ms behind`;
  return html`<p class="status">As of <time datetime=${asOf.time} title=${asOf.time}>${shortTime(asOf.time)}</time> UTC, cycle ${number(asOf.cycle)}, ${from}</p>`;
}

function tokenPart() {
  const submitted = (event) => {
    event.preventDefault();
    store.useToken(event.target.elements.token.value.trim());
    event.target.reset();
    poll();
    update();
  };
  const { sentence } = store.needsToken;
  return html`<form class="token" @submit=${submitted}>
    <p>${sentence}.</p>
    <label class="field block">Token <input name="token" type="password" autocomplete="off" required></label>
    <button type="submit" class="main-action">Use this token</button>
    <p class="quiet">It is kept in memory only: after a reload you are asked again. <code>kubectl create token NAME</code> makes one for a service account.
      <code>kubectl vc ui</code> opens this page with the rights of your kubeconfig, without a token.</p></form>`;
}

function wantedPaths() {
  return currentView().wanted(viewContext());
}

// Asks for paths that nobody asks for yet, and draws what has changed.
async function ask(paths) {
  if (document.hidden) return;
  const asked = paths.filter((path) => !pending.has(path));
  asked.forEach((path) => pending.add(path));
  await Promise.all(asked.map(async (path) => {
    try {
      if (await store.refresh(path)) update();
    } finally {
      pending.delete(path);
    }
  }));
}

async function poll() {
  clearTimeout(page.timer);
  if (document.hidden || store.isFile || store.needsToken) return;
  if (Date.now() >= store.pausedUntil) await ask(wantedPaths());
  tellConnection();
  tellVerdict();
  clearTimeout(page.timer);
  page.timer = setTimeout(poll, POLL_MILLIS);
}

function tellConnection() {
  const isLost = Boolean(store.lostSince);
  if (isLost || page.wasLost) update();
  if (isLost !== page.wasLost) announce(isLost ? 'The scheduler does not answer.' : 'The scheduler answers again.');
  page.wasLost = isLost;
}

// Announces that the job that is shown stands elsewhere than before.
function tellVerdict() {
  const verdict = currentView() === jobView ? store.get(wantedPaths()[0]).document?.verdict : null;
  const text = verdict ? `${location.hash} ${verdict.code}` : '';
  const isOfSameJob = text && page.told.startsWith(`${location.hash} `);
  if (isOfSameJob && text !== page.told) announce(`${verdict.code}: ${verdict.text}`);
  page.told = text;
}

function changeRoute() {
  const before = [page.route.name, ...page.route.parts].join('/');
  page.route = readRoute();
  const isOtherView = before !== [page.route.name, ...page.route.parts].join('/');
  draw();
  if (!isOtherView) return;
  window.scrollTo(0, 0);
  document.getElementById('title').focus({ preventScroll: true });
  poll();
}

function measure() {
  const width = document.getElementById('title').clientWidth;
  if (width === page.width) return;
  page.width = Math.max(NARROWEST, width);
  update();
}

draw();
measure();
window.addEventListener('hashchange', changeRoute);
window.addEventListener('resize', () => { measure(); update(); });
document.addEventListener('visibilitychange', () => { update(); poll(); });
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', update);
poll();
