// Common parts: requests, live events, formats, links.
import { html, nothing, render, svg } from "./lit-html.js";

export { html, nothing, render, svg };

export class RequestFailed extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The JSON of a path with a query; throws RequestFailed with the daemon's own words. */
export async function get(path, query = {}) {
  const asked = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined && value !== null && value !== "") asked.set(name, value);
  }
  const text = asked.toString();
  let response;
  try {
    response = await fetch(text ? `${path}?${text}` : path, { credentials: "same-origin" });
  } catch {
    throw new RequestFailed(0, "The daemon does not answer.");
  }
  const body = await response.text();
  let content;
  try {
    content = JSON.parse(body);
  } catch {
    throw new RequestFailed(response.status, body.trim().slice(0, 200) || response.statusText);
  }
  if (!response.ok && content.error) throw new RequestFailed(response.status, content.error);
  return content;
}

// ---------------------------------------------------------------- addresses

const named = (kind) => (name) => {
  // "." and ".." are no segments of a path for a browser; nor is nothing.
  if (name === "" || name === "." || name === "..") {
    return `/console/${kind}/?name=${encodeURIComponent(name)}`;
  }
  try {
    return `/console/${kind}/${encodeURIComponent(name)}`;
  } catch {
    return `/console/${kind}/`; // half of a surrogate pair is no text for an address
  }
};
export const groupLink = named("groups");
export const topicLink = named("topics");

/** The name in the address of a page of one group or topic; null: it has none. */
export function nameInAddress(kind) {
  const start = `/console/${kind}/`;
  if (!location.pathname.startsWith(start)) return null;
  const rest = location.pathname.slice(start.length);
  if (rest === "") return new URLSearchParams(location.search).get("name");
  try {
    return decodeURIComponent(rest);
  } catch {
    return rest;
  }
}

/** What is shown of a name: an empty one is named as such. */
export const shown = (name) => (name === "" ? html`<em class="quiet">(empty)</em>` : name);

// ---------------------------------------------------------------- formats

const numbers = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });
const clock = new Intl.DateTimeFormat("en-GB", { timeStyle: "medium" });
const dateAndClock = new Intl.DateTimeFormat("en-GB", { dateStyle: "medium", timeStyle: "medium" });

export const UNKNOWN = "–";
export const number = (value) => (value === null || value === undefined ? UNKNOWN : numbers.format(value));
export const short = (value) => (value === null || value === undefined ? UNKNOWN : compact.format(value));

export function bytes(value) {
  if (value === null || value === undefined) return UNKNOWN;
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let at = 0;
  while (value >= 1000 && at < units.length - 1) {
    value /= 1000;
    at += 1;
  }
  return `${at === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[at]}`;
}

/** In the two units that people use, as everywhere in Rollcall. */
export function duration(ms) {
  if (ms === null || ms === undefined) return UNKNOWN;
  if (ms < 0) return `-${duration(-ms)}`;
  if (Math.round(ms) < 1000) return `${Math.round(ms)} ms`;
  if (ms < 9950) return `${(ms / 1000).toFixed(1)} s`;
  const two = (count, size, large, small) => {
    const rest = count % size;
    return `${Math.floor(count / size)} ${large}${rest ? ` ${rest} ${small}` : ""}`;
  };
  const seconds = Math.round(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return two(seconds, 60, "min", "s");
  const minutes = Math.round(seconds / 60);
  if (minutes < 2880) return two(minutes, 60, "h", "min");
  return two(Math.round(minutes / 60), 24, "d", "h");
}

export const timeOfDay = (ms) => clock.format(new Date(ms));
export const instant = (ms) => (ms === null || ms === undefined ? UNKNOWN : dateAndClock.format(new Date(ms)));

export function timeElement(ms, text = instant(ms)) {
  if (ms === null || ms === undefined) return UNKNOWN;
  return html`<time datetime=${new Date(ms).toISOString()} title=${instant(ms)}>${text}</time>`;
}

const SEVERITY = { OK: "good", WARN: "warn", ERR: "bad", STOP: "bad", STALL: "bad", REWIND: "bad" };
export const statusChip = (status) =>
  status ? html`<span class="chip ${SEVERITY[status] ?? ""}">${status}</span>` : html`<span class="quiet">${UNKNOWN}</span>`;

const STATES = { Stable: "good", Empty: "", Dead: "" };
export const stateChip = (state) => html`<span class="chip ${STATES[state] ?? "warn"}">${state}</span>`;

/** `[2, 3, 4, 7]` as "2-4, 7". */
export function ranges(list) {
  const found = [];
  for (const each of list) {
    const last = found.at(-1);
    if (last && last[1] === each - 1) last[1] = each;
    else found.push([each, each]);
  }
  return found.map(([from, to]) => (from === to ? `${from}` : `${from}-${to}`)).join(", ");
}

export function failure(error) {
  const again = error.status === 401 ? "Reload the page to sign in." : "";
  return html`<p class="failure" role="alert">${error.message} ${again}</p>`;
}

/** Links to the pages of a list; `go` shows a page without loading this one again. */
export function pager(page, pages, link, go) {
  if (pages <= 1) return nothing;
  const to = (number, text) =>
    number < 1 || number > pages || number === page
      ? html`<span class="quiet">${text}</span>`
      : html`<a href=${link(number)} @click=${(event) => follow(event, () => go(number))}>${text}</a>`;
  return html`<nav class="pager" aria-label="Pages">
    ${to(1, "First")} ${to(page - 1, "Previous")}
    <span>Page ${number(page)} of ${number(pages)}</span>
    ${to(page + 1, "Next")} ${to(pages, "Last")}
  </nav>`;
}

/** A plain click is ours; one for a new window or tab is the browser's. */
export function follow(event, action) {
  if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey || event.button) return;
  event.preventDefault();
  action();
}

/** A header cell that sorts. `sort` is as the API takes it. */
export function sortHeader(label, name, state, className = "") {
  const is = state.sort === name ? "ascending" : state.sort === `-${name}` ? "descending" : "none";
  const next = is === "none" ? (state.ascendingFirst?.includes(name) ? name : `-${name}`) : is === "descending" ? name : `-${name}`;
  const arrow = { ascending: " ▲", descending: " ▼", none: "" }[is];
  return html`<th scope="col" class=${className} aria-sort=${is}>
    <a href=${state.link({ sort: next, page: 1 })}
      @click=${(event) => follow(event, () => state.change({ sort: next, page: 1 }))}>${label}<span aria-hidden="true">${arrow}</span></a>
  </th>`;
}

/** State of a list in the address, so that it can be sent to others. */
export function listState(defaults, changed) {
  const asked = new URLSearchParams(location.search);
  const state = {};
  for (const [name, value] of Object.entries(defaults)) {
    const given = asked.get(name);
    state[name] = given === null ? value : typeof value === "number" ? Math.max(1, Number.parseInt(given, 10) || value) : given;
  }
  const link = (change) => {
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries({ ...state, ...change })) {
      if (!(name in defaults)) continue;
      if (value === defaults[name]) next.delete(name);
      else next.set(name, value);
    }
    const text = next.toString();
    return text ? `${location.pathname}?${text}` : location.pathname;
  };
  return {
    values: state,
    link,
    change(change) {
      const address = link(change);
      Object.assign(state, change);
      history.replaceState(null, "", address);
      changed();
    },
  };
}

// ---------------------------------------------------------------- live

const RETRY_MS = 10_000;

/**
 * Server-sent events while the page can be seen. `handlers` has functions by the event's name;
 * `reset` is called when events may have been missed, also at the beginning.
 */
export function live(query, handlers) {
  const sign = document.getElementById("live");
  let source = null;
  let retry = 0;
  const say = (text, state) => {
    if (sign.textContent !== text) sign.textContent = text;
    sign.dataset.state = state;
  };
  const close = () => {
    clearTimeout(retry);
    source?.close();
    source = null;
  };
  const open = () => {
    close();
    const text = new URLSearchParams(query).toString();
    source = new EventSource(text ? `/api/events?${text}` : "/api/events");
    source.addEventListener("hello", () => say("live", "live"));
    for (const name of Object.keys(handlers)) {
      source.addEventListener(name, (event) => handlers[name](JSON.parse(event.data)));
    }
    source.addEventListener("error", () => {
      if (source.readyState === EventSource.CLOSED) {
        // Refused: too many streams, or the daemon is gone. Ask now and then instead.
        say(`not live, asking every ${RETRY_MS / 1000} s`, "lost");
        close();
        retry = setTimeout(() => {
          handlers.reset();
          open();
        }, RETRY_MS);
      } else {
        say("reconnecting", "lost");
      }
    });
  };
  document.addEventListener("visibilitychange", () => {
    if (document.hidden) {
      close();
      say("paused", "paused");
    } else {
      handlers.reset();
      open();
    }
  });
  addEventListener("pagehide", close);
  handlers.reset();
  if (document.hidden) say("paused", "paused");
  else open();
}

/** Runs `work` at most once per `ms`, and once more if it was asked for meanwhile. */
export function throttled(ms, work) {
  let running = false;
  let again = false;
  const run = async () => {
    if (running) {
      again = true;
      return;
    }
    running = true;
    try {
      await work();
    } finally {
      setTimeout(() => {
        running = false;
        if (again) {
          again = false;
          run();
        }
      }, ms);
    }
  };
  return run;
}
