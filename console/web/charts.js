// Charts: lag, and what is committed and produced per second, of chosen partitions.
import { timeOfDay } from "./common.js";
import uPlot from "./uplot.js";

const CHOSEN_MAX = 8;
const POINTS_MAX = 1_800; // of a partition: an hour of events
const RATE_SECONDS = 10; // a rate is the mean over at least that: commits come in steps
const RANGE_SECONDS_MIN = 60;
const REDRAW_MS = 2_000;
const COLOURS = {
  light: ["#1f77b4", "#c44e00", "#2b8a3e", "#b02a37", "#7048a8", "#8c5a2b", "#c2255c", "#5c6370"],
  dark: ["#6cb6ff", "#ffa657", "#7ee787", "#ff7b72", "#d2a8ff", "#d7ba7d", "#ff9bce", "#c9d1d9"],
};

class Series {
  constructor(topic, partition) {
    this.topic = topic;
    this.partition = partition;
    this.points = []; // [seconds, lag, committed, end]
  }

  add(seconds, lag, committed, end) {
    const last = this.points.at(-1);
    if (last && seconds <= last[0]) return;
    this.points.push([seconds, lag, committed, end]);
    if (this.points.length > POINTS_MAX) this.points.shift();
  }

  /** Commits as [ms, offset, lag] and ends of the log as [ms, offset], each the oldest first. */
  addSamples(commits, ends) {
    let committed = null;
    let end = null;
    const samples = [...commits.map(([ms, offset, lag]) => ({ ms, offset, lag })), ...ends.map(([ms, offset]) => ({ ms, offset }))];
    for (const { ms, offset, lag } of samples.sort((left, right) => left.ms - right.ms)) {
      if (lag === undefined) end = offset;
      else {
        committed = offset;
        if (lag !== null) end = offset + lag;
      }
      if (committed === null) continue;
      const known = lag ?? (end === null ? null : Math.max(0, end - committed));
      this.add(Math.floor(ms / 1000), known, committed, end);
    }
  }

  /** Up to now: there is an event only when an offset moves. */
  held(now) {
    const last = this.points.at(-1);
    return last && last[0] < now ? [...this.points, [now, ...last.slice(1)]] : this.points;
  }
}

/** Of [seconds, …] points: the mean per second of a column, up to each point. */
function rates(points, column) {
  let from = 0;
  return points.map((point, index) => {
    while (from + 1 < index && points[from + 1][0] <= point[0] - RATE_SECONDS) from += 1;
    const before = points[from];
    if (index === from || point[column] === null || before[column] === null) return null;
    return Math.max(0, point[column] - before[column]) / (point[0] - before[0]);
  });
}

export class LagCharts {
  /** `content` is the answer of /api/lag/windows. */
  constructor(content) {
    this.series = new Map();
    for (const each of content.windows) {
      this.#series(each.topic, each.partition).addSamples(each.commits, each.ends);
    }
    const last = (series) => series.points.at(-1)?.[1] ?? 0;
    const worst = [...this.series.values()].sort((left, right) => last(right) - last(left));
    this.chosen = new Set(worst.slice(0, CHOSEN_MAX).map((each) => key(each.topic, each.partition)));
    this.charts = [];
    this.elements = [];
    this.isZoomed = false;
  }

  #series(topic, partition) {
    const name = key(topic, partition);
    if (!this.series.has(name)) this.series.set(name, new Series(topic, partition));
    return this.series.get(name);
  }

  has(topic, partition) {
    return this.chosen.has(key(topic, partition));
  }

  choose(topic, partition, is) {
    this.#series(topic, partition);
    if (is) this.chosen.add(key(topic, partition));
    else this.chosen.delete(key(topic, partition));
    this.redraw();
  }

  /** An event about offsets. */
  add(event) {
    const seconds = Math.floor(event.at_ms / 1000);
    let isNew = false;
    for (const [topic, partition, committed, end] of event.partitions) {
      isNew ||= !this.series.has(key(topic, partition)) && this.chosen.size < CHOSEN_MAX;
      if (isNew && this.chosen.size < CHOSEN_MAX) this.chosen.add(key(topic, partition));
      this.#series(topic, partition).add(seconds, end === null ? null : Math.max(0, end - committed), committed, end);
    }
    if (isNew) this.redraw();
    else this.#update();
  }

  attach(...elements) {
    this.elements = elements;
    this.redraw();
    const observer = new ResizeObserver(() => {
      this.charts.forEach((chart, at) => chart.setSize(size(this.elements[at])));
    });
    for (const element of elements) {
      observer.observe(element);
      element.addEventListener("dblclick", () => {
        this.isZoomed = false;
        this.#update();
      });
    }
    setInterval(() => {
      if (!document.hidden) this.#update();
    }, REDRAW_MS);
  }

  /** Other partitions, or other colours. */
  redraw() {
    if (!this.elements.length) return;
    this.isZoomed = false;
    for (const chart of this.charts) chart.destroy();
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--quiet").trim();
    const line = style.getPropertyValue("--line").trim();
    const isDark = document.documentElement.dataset.theme
      ? document.documentElement.dataset.theme === "dark"
      : matchMedia("(prefers-color-scheme: dark)").matches;
    const colours = COLOURS[isDark ? "dark" : "light"];
    const axis = { stroke: ink, grid: { stroke: line, width: 1 }, ticks: { stroke: line, width: 1 } };
    const [lag, perSecond] = this.#data();
    const chosen = this.#chosenSeries();
    const label = (each) => `${each.topic} ${each.partition}`;
    const lines = chosen.map((each, at) => ({ label: label(each), stroke: colours[at % colours.length], width: 1.5, spanGaps: true, points: { show: false } }));
    const dashes = chosen.map((each, at) => ({ ...lines[at], label: `${label(each)} produced`, dash: [4, 4], width: 1 }));
    const numbers = (self, values) => values.map((value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : value));
    const whole = { incrs: [1, 2, 5].flatMap((step) => [...Array(13).keys()].map((power) => step * 10 ** power)).sort((left, right) => left - right) };
    const options = (element, series, hasLegend, steps = {}) => ({
      ...size(element),
      series: [{ label: "Time", value: (self, seconds) => (seconds === null ? "–" : timeOfDay(seconds * 1000)) }, ...series],
      axes: [{ ...axis, values: (self, seconds) => seconds.map((each) => timeOfDay(each * 1000)), space: 80 }, { ...axis, ...steps, values: numbers, size: 55 }],
      scales: {
        x: { range: (self, low, high) => (this.isZoomed ? [low, high] : [Math.min(low, high - RANGE_SECONDS_MIN), high]) },
        y: { range: (self, low, high) => [0, Math.max(high ?? 1, 1) * 1.05] },
      },
      legend: { show: hasLegend },
      cursor: { drag: { x: true, y: false } },
      hooks: { setSelect: [({ select }) => (this.isZoomed ||= select.width > 0)] },
    });
    this.charts = [
      new uPlot(options(this.elements[0], lines, true, whole), lag, this.elements[0]),
      new uPlot(options(this.elements[1], [...lines, ...dashes], false), perSecond, this.elements[1]),
    ];
  }

  #update() {
    if (!this.charts.length) return;
    const [lag, perSecond] = this.#data();
    this.charts[0].setData(lag, !this.isZoomed);
    this.charts[1].setData(perSecond, !this.isZoomed);
    if (this.isZoomed) for (const chart of this.charts) chart.redraw();
  }

  #chosenSeries() {
    return [...this.chosen].map((name) => this.series.get(name));
  }

  #data() {
    const now = Math.floor(Date.now() / 1000);
    const chosen = this.#chosenSeries().map((each) => each.held(now));
    const times = [...new Set(chosen.flatMap((points) => points.map(([seconds]) => seconds)))].sort((left, right) => left - right);
    const at = new Map(times.map((seconds, index) => [seconds, index]));
    const column = (points, values) => {
      const cells = new Array(times.length).fill(null);
      points.forEach(([seconds], index) => (cells[at.get(seconds)] = values[index]));
      return cells;
    };
    const of = (values) => chosen.map((points) => column(points, values(points)));
    const lag = of((points) => points.map((point) => point[1]));
    const committed = of((points) => rates(points, 2));
    const produced = of((points) => rates(points, 3));
    return [[times, ...lag], [times, ...committed, ...produced]];
  }
}

const key = (topic, partition) => JSON.stringify([topic, partition]);
const size = (element) => ({ width: Math.max(220, element.clientWidth), height: 220 });
