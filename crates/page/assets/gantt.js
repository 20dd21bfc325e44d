// The picture of jobs over time: a band for each queue, with as many rows as jobs at once.
import { html, svg, nothing } from './vendor/lit-html.js';
import { grantText, legendPart } from './parts.js';
import { counted, isHiddenName, number, shortTime, viewAddress, visibleName } from './format.js';

const MOST_BARS = 4000;
const MOST_ROWS = 40;
const ROW = 10; // height of a row, of the name of a band, of the axis, in pixels
const HEAD = 22;
const AXIS = 24;

/** Returns jobs in rows without overlap. Those beyond the last row or bar are left out. */
function packRows(jobs, end, mostBars) {
  const rows = [];
  const placed = [];
  for (const job of jobs) {
    const from = Date.parse(job.start);
    let row = rows.findIndex((free) => free <= from);
    if (row < 0) row = rows.length;
    if (row >= MOST_ROWS || placed.length >= mostBars) continue;
    rows[row] = job.end ? Date.parse(job.end) : end;
    placed.push({ job, row, from, to: rows[row] });
  }
  return { placed, count: rows.length };
}

function bandsOf(jobs, end) {
  const byQueue = new Map();
  const sorted = [...jobs].sort((l, r) => (l.start < r.start ? -1 : 1));
  for (const job of sorted) {
    const queue = job.queue ?? '';
    if (!byQueue.has(queue)) byQueue.set(queue, []);
    byQueue.get(queue).push(job);
  }
  return [...byQueue].sort().map(([queue, ofQueue]) => ({ queue, total: ofQueue.length, ...packRows(ofQueue, end, MOST_BARS / byQueue.size) }));
}

export function ganttPart({ jobs = [], evictions = [], from, to, asOf }, { width, go }) {
  if (jobs.length === 0 && evictions.length === 0) return nothing;
  const [start, end] = [Date.parse(from), Date.parse(to)];
  const bands = bandsOf(jobs, end);
  const place = (time) => (Math.min(1, Math.max(0, (time - start) / Math.max(1, end - start))) * (width - 2));
  const shown = bands.reduce((sum, band) => sum + band.placed.length, 0);
  const clicked = (event) => {
    const { address } = event.target.closest('[data-address]')?.dataset ?? {};
    if (address) go(address);
  };
  let top = AXIS;
  const parts = bands.map((band) => {
    const part = bandPart(band, top, width, place, asOf?.time);
    top += HEAD + band.count * ROW + 6;
    return part;
  });
  const height = top + (evictions.length ? HEAD + 18 : 0);
  const label = `${counted(shown, 'job')} over time by queue, and ${counted(evictions.length, 'eviction')}. The tables have the same times.`;
  return html`<figure class="gantt"><svg width=${width} height=${height} role="img" aria-label=${label} @click=${clicked}>
      ${axisPart(start, end, width, height, place, asOf?.time)}${parts}
      ${evictions.length ? evictionMarks(evictions, top, place, asOf?.time) : nothing}</svg>
    <figcaption>${shown < jobs.length ? `The picture shows ${number(shown)} of ${number(jobs.length)} jobs, the table all of them. ` : ''}
      ${legendPart([[barShape(0, 24, 5, false), 'has ended'], [barShape(0, 24, 5, true), 'runs'], [evictionShape(12, 4), 'eviction']])}</figcaption></figure>`;
}

function bandPart({ queue, placed, total }, top, width, place, now) {
  const bar = ({ job, row, from, to }) => {
    const x = place(from);
    const y = top + HEAD + row * ROW;
    const title = `${visibleName(job.job)}, ${counted(job.pods, 'pod')}, ${shortTime(job.start, now)} to ${job.end ? shortTime(job.end, now) : 'now'}`;
    const address = isHiddenName(job.job) ? nothing : viewAddress(['jobs', ...job.job.split('/')]);
    return svg`<g data-address=${address}>${barShape(x, Math.max(2, place(to) - x - 1), y, !job.end)}<title>${title}</title></g>`;
  };
  return svg`<g><line class="band" x1="0" x2=${width} y1=${top} y2=${top}></line>
    <text x="2" y=${top + 15}>${queue || 'no queue'} (${counted(total, 'job')})</text>${placed.map(bar)}</g>`;
}

/** Returns a bar. That of a job that runs has a point at its end. */
function barShape(x, width, y, runs) {
  const point = runs ? Math.min(4, width) : 0;
  return svg`<path class=${runs ? 'running' : 'ended'} d="M${x} ${y} h${width - point} l${point} 4 l${-point} 4 h${point - width} z"></path>`;
}

function evictionShape(x, y) {
  return svg`<path class="eviction" d="M${x - 5} ${y} h10 l-5 10 z"></path>`;
}

function axisPart(start, end, width, height, place, now) {
  const count = Math.max(2, Math.min(8, Math.floor(width / 110)));
  const times = Array.from({ length: count }, (_, at) => start + ((end - start) * at) / count);
  const text = (time) => shortTime(new Date(Math.floor(time / 1000) * 1000).toISOString().replace('.000Z', 'Z'), now);
  return svg`${times.map((time) => svg`<line class="grid" x1=${place(time)} x2=${place(time)} y1="0" y2=${height}></line>
    <text class="tick" x=${place(time) + 3} y="13">${text(time)}</text>`)}`;
}

function evictionMarks(evictions, top, place, now) {
  const mark = (it) => svg`<g>${evictionShape(place(Date.parse(it.time)), top + HEAD)}
    <title>${visibleName(it.pod, 'pod')}, ${it.action}, ${shortTime(it.time, now)}, ${grantText(it)}</title></g>`;
  return svg`<g><text x="2" y=${top + 15}>Evictions</text>${evictions.slice(-MOST_BARS).map(mark)}</g>`;
}
