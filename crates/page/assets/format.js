// Texts of amounts, durations, times, names and obstacles. Words as in `kubectl vc why`.

const QUANTITY = /^([+-]?[\d.]+)([eE][+-]?\d+)?(?:([numkKMGTPE])(i?))?$/;
const SUFFIX_POWERS = { n: -3, u: -2, m: -1, k: 1, K: 1, M: 2, G: 3, T: 4, P: 5, E: 6 };

// Returns a Kubernetes quantity as a number for lengths of bars, 0 if it is none.
export function quantityNumber(text) {
  const [, digits, exponent = '', suffix, isBinary] = QUANTITY.exec(text ?? '') ?? [];
  return digits ? Number(digits + exponent) * (isBinary ? 1024 : 1000) ** (SUFFIX_POWERS[suffix] ?? 0) : 0;
}

// Returns the part of `all` that `some` is, from 0 to 1, or `null` if there is nothing.
export function quantityPart(some, all) {
  const whole = quantityNumber(all);
  return whole > 0 ? Math.min(1, Math.max(0, quantityNumber(some) / whole)) : null;
}

export function counted(count, noun, nouns = `${noun}s`) {
  return `${number(count)} ${count === 1 ? noun : nouns}`;
}

export function number(value) {
  return value?.toLocaleString('en') ?? '–';
}

export function percent(value) {
  return value === undefined ? '–' : `${value} %`;
}

export function shareText(share) {
  return share?.toFixed(2) ?? '–';
}

// Returns the two largest units of a duration: `1h30m`, `45s`.
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return '–';
  const parts = [];
  let left = Math.max(0, Math.floor(seconds));
  for (const [size, unit] of [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']]) {
    if (left >= size) parts.push(`${Math.floor(left / size)}${unit}`);
    left %= size;
  }
  return parts.slice(0, 2).join('') || '0s';
}

// Returns an RFC 3339 time without the day of `now` and without seconds `:00`.
export function shortTime(time, now = '') {
  if (!time) return '–';
  const [day, clock] = time.split('T');
  if (!clock) return time;
  const short = clock.replace(/(\.\d+)?Z$/, '').replace(/^(\d\d:\d\d):00$/, '$1');
  return day === now.split('T')[0] ? short : `${day} ${short}`;
}

export function amountsText(amounts) {
  return Object.entries(amounts ?? {}).map(([name, amount]) => `${amount} ${name}`).join(', ');
}

export function heldText(held) {
  return `${held.join(' of the last ')} predictions held.`;
}

export function aheadText({ jobs, pods, amounts }) {
  const text = amountsText(amounts);
  return `${counted(jobs, 'job')} with ${counted(pods, 'pod')}${text ? ` (${text})` : ''}`;
}

// True if the name stands for an object that the reader may not see.
export function isHiddenName(name) {
  return /^other-\d+$/.test(name ?? '');
}

// Returns the name of a job or pod, or says that the reader may not see it.
export function visibleName(name, noun = 'job') {
  return isHiddenName(name) ? `a ${noun} that you may not see (${name})` : name;
}

export function jobName(subject) {
  const name = subject.job ?? subject.name;
  return subject.namespace ? `${subject.namespace}/${name}` : visibleName(subject.name);
}

export function atomText(atom) {
  return atom.replace('/', ' ');
}

// Returns the names of resources, devices first, then cpu and memory.
export function sortedResources(names) {
  const order = (name) => (name.includes('/') ? 0 : { cpu: 1, memory: 2 }[name] ?? 3);
  return [...new Set(names)].sort((l, r) => order(l) - order(r) || (l < r ? -1 : 1));
}

// Returns the values that are set as a query with its question mark, or an empty text.
export function queryText(values) {
  const text = new URLSearchParams(Object.entries(values).filter(([, value]) => value)).toString();
  return text && `?${text}`;
}

// Returns the address of a view: the parts become path segments of the hash.
export function viewAddress(parts, query = {}) {
  return `#/${parts.map(encodeURIComponent).join('/')}${queryText(query)}`;
}
