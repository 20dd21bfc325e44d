// The answers of the scheduler, by path and query below the API's base.

const MOST_ENTRIES = 80;
const LONGEST_WAIT = 15000;
const NO_JSON = 'The answer cannot be read: it is not JSON.';
const API_ADDRESS = new URL('../apis/answers.volcano.sh/v1', document.baseURI).href;

// Returns what a `Status` object says, its hint apart.
function problemOf(code, message, retryAfter = 0) {
  const [sentence, hint] = message.split('\nhint: ');
  return { code, sentence, hint, retryAfter };
}

async function problemOfResponse(response) {
  const retryAfter = Number(response.headers.get('retry-after')) || 0;
  try {
    const status = await response.json();
    if (status.message) return problemOf(response.status, status.message, retryAfter);
  } catch {
    // A proxy has answered.
  }
  return problemOf(response.status, `The server answered ${response.status} ${response.statusText}`, retryAfter);
}

// Returns what a file answers. Lists serve every part, filter and item of themselves.
function recordedAnswer(answers, path) {
  const [place, query] = path.split('?');
  const parameters = new URLSearchParams(query);
  const found = answers[place];
  if (found) return found.items ? partOfList(found, parameters) : found;
  const [kind, name, list, job] = place.split('/').slice(1).map(decodeURIComponent);
  if (kind !== 'namespaces') return list ? undefined : answers[`/${kind}`]?.items?.find((it) => it.name === name);
  const all = answers[`/${list}`];
  const named = (field) => all?.items.find(({ subject: it }) => it.namespace === name && it[field] === job);
  if (job) return named('name') ?? named('job');
  parameters.set('namespace', name);
  return all && partOfList(all, parameters);
}

function partOfList(list, parameters) {
  const filters = ['namespace', 'queue', 'code'].filter((key) => parameters.get(key));
  const isWanted = (it) => filters.every((key) => it[key] === parameters.get(key));
  const items = list.items.filter((it) => isWanted({ ...it.verdict, ...(it.subject ?? it) }));
  const offset = Number(parameters.get('offset'));
  const rows = items.length;
  return { ...list, rows, total: filters.length ? rows : list.total, items: items.slice(offset, offset + Number(parameters.get('limit') ?? parameters.get('last') ?? rows)) };
}

// The answers that are known, each with its ETag, and the token that asks for them.
export class AnswerStore {
  constructor() {
    const data = document.getElementById('data');
    this.isFile = Boolean(data);
    this.recorded = data && JSON.parse(data.textContent); // answers by path, if the page is a file of its own
    this.entries = new Map();
    this.token = '';
    this.needsToken = null; // the problem of the last 401
    this.lostSince = 0; // time of the last answer before the connection was lost
    this.lastAnswer = 0;
    this.pausedUntil = 0;
    this.asOf = null;
  }

  // Returns `{document, problem}` as far as they are known.
  get(path) {
    return this.entries.get(path) ?? {};
  }

  // Asks for a path again. Returns true if something is to be shown that was not.
  async refresh(path) {
    if (this.isFile) return this.readRecorded(path);
    const known = this.get(path);
    const response = await this.request(path, { headers: known.tag ? { 'If-None-Match': known.tag } : {} });
    if (!response) return true;
    if (response.status === 304) return this.keep(path, { ...known, problem: null }, Boolean(known.problem));
    if (!response.ok) return this.keepProblem(path, await problemOfResponse(response));
    const document = await response.json().catch(() => null);
    if (!document) return this.keepProblem(path, problemOf(response.status, NO_JSON));
    return this.keep(path, { document, tag: response.headers.get('etag') });
  }

  readRecorded(path) {
    if (this.entries.has(path)) return false;
    const found = recordedAnswer(this.recorded, path);
    return this.keep(path, found ? { document: found } : { problem: problemOf(404, 'This file has no answer to that.') });
  }

  // Sends a text; again, three times at most, if it is too much just now.
  async send(path, text, repeats = 3) {
    const headers = { 'Content-Type': 'application/yaml' }; // JSON is YAML
    const response = await this.request(path, { method: 'POST', headers, body: text });
    if (!response) return { problem: problemOf(0, 'The scheduler does not answer.') };
    if (!response.ok) {
      const problem = await problemOfResponse(response);
      const pause = problem.code === 429 && problem.retryAfter;
      if (!pause || pause > 5 || !repeats) return { problem };
      await new Promise((end) => setTimeout(end, pause * 1000));
      return this.send(path, text, repeats - 1);
    }
    const document = await response.json().catch(() => null);
    return document ? { document } : { problem: problemOf(response.status, NO_JSON) };
  }

  // Returns the response. Returns `null` if there is no connection.
  async request(path, { headers, ...options }) {
    const credentials = this.token ? { Authorization: `Bearer ${this.token}` } : {};
    let response;
    try {
      response = await fetch(API_ADDRESS + path, {
        ...options, headers: { Accept: 'application/json', ...credentials, ...headers }, cache: 'no-store', redirect: 'error', signal: AbortSignal.timeout(LONGEST_WAIT),
      });
    } catch {
      this.lostSince ||= this.lastAnswer || Date.now();
      return null;
    }
    this.lostSince = 0;
    this.lastAnswer = Date.now();
    return response;
  }

  keepProblem(path, problem) {
    if (problem.retryAfter) this.pausedUntil = Date.now() + Math.min(problem.retryAfter, 60) * 1000;
    if (problem.code === 401) this.needsToken = problem;
    // What is allowed no more goes; what is not answered just now stays.
    const isGone = [401, 403, 404].includes(problem.code);
    return this.keep(path, isGone ? { problem } : { ...this.get(path), problem });
  }

  // Keeps an answer; the oldest ones go, but in a file. Returns `isNew`.
  keep(path, entry, isNew = true) {
    if (entry.document?.asOf) this.asOf = entry.document.asOf;
    this.entries.delete(path);
    this.entries.set(path, entry);
    while (!this.isFile && this.entries.size > MOST_ENTRIES) this.entries.delete(this.entries.keys().next().value);
    return isNew;
  }

  // Keeps the token in memory and forgets what was refused without it.
  useToken(token) {
    this.token = token;
    this.needsToken = null;
    this.entries.clear();
  }
}
