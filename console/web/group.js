// One group: members and what they own, why it rebalanced, timeline, lag, offset history.
import {
  duration, failure, get, groupLink, html, instant, live, nothing, number, pager, ranges, render, RequestFailed,
  short, shown, stateChip, statusChip, throttled, timeElement, topicLink,
} from "./common.js";
import { LagCharts } from "./charts.js";
import { drawTimeline } from "./timeline.js";

const PARTITIONS_MAX = 200;
const REBALANCES = 20;
const OFFSET_EVENTS = 50;
const LARGE_PARTITIONS = 2_000; // a group of that size is read again with the samples only
const RANGES = [["1 min", 60], ["5 min", 300], ["15 min", 900], ["1 h", 3600], ["6 h", 21_600], ["24 h", 86_400]];

export function show(main, name) {
  document.title = `${name || "(empty)"} – Rollcall`;
  const parts = { group: null, lag: null, why: null, verdicts: null, timeline: null, offsets: null };
  const errors = {};
  const state = { page: 1, range: 300, charts: null };
  const asked = { group: name };

  const loaders = {
    group: () => get("/api/group", { ...asked, page: state.page }),
    verdicts: () => get("/api/verdicts", asked),
    why: () => get("/api/rebalances", { ...asked, limit: REBALANCES }),
    timeline: () => get("/api/timeline", { ...asked, since: Date.now() - state.range * 1000 }),
    offsets: () => get("/api/history", { ...asked, offsets: "true", limit: OFFSET_EVENTS }),
    lag: () => get("/api/lag", { ...asked, limit: PARTITIONS_MAX }),
  };

  async function load(...names) {
    await Promise.all(
      names.map(async (part) => {
        try {
          parts[part] = await loaders[part]();
          errors[part] = null;
        } catch (fault) {
          errors[part] = fault;
          if (fault.status === 404) parts[part] = null;
        }
        draw();
      }),
    );
  }

  async function loadCharts() {
    try {
      state.charts = new LagCharts(await get("/api/lag/windows", asked));
    } catch (fault) {
      if (!(fault instanceof RequestFailed)) throw fault;
      state.charts = new LagCharts({ windows: [] });
    }
    draw();
    state.charts.attach(document.getElementById("lag-chart"), document.getElementById("rate-chart"));
  }

  function draw() {
    render(
      html`
        ${heading(name, parts, errors)}
        ${errors.group && errors.group.status !== 404 ? failure(errors.group) : nothing}
        ${verdictCards(parts.verdicts)}
        <section class="card" aria-labelledby="timeline-title">
          <h2 id="timeline-title">Timeline</h2>
          <div class="buttons" role="group" aria-label="Range of time">
            ${RANGES.map(([text, seconds]) => html`<button type="button" aria-pressed=${state.range === seconds}
              @click=${() => { state.range = seconds; load("timeline"); }}>${text}</button>`)}
          </div>
          ${errors.timeline ? failure(errors.timeline) : nothing}
          <div id="timeline">${parts.timeline ? drawTimeline(parts.timeline, state.range) : nothing}</div>
        </section>
        ${members(name, parts.group, errors.group, state, load)}
        <section class="card" aria-labelledby="lag-title">
          <h2 id="lag-title">Lag</h2>
          ${errors.lag && errors.lag.status !== 404 ? failure(errors.lag) : nothing}
          ${lagFacts(parts.lag)}
          <div class="columns">
            <figure><figcaption>Lag of each partition, records</figcaption><div id="lag-chart" class="chart"></div></figure>
            <figure><figcaption>Committed per second (lines) and produced (dashes), records, in the same colours</figcaption><div id="rate-chart" class="chart"></div></figure>
          </div>
          ${partitions(parts.lag, state.charts, draw)}
        </section>
        <div class="columns">
          ${why(parts.why, errors.why)}
          ${offsetHistory(parts.offsets, errors.offsets)}
        </div>
      `,
      main,
    );
  }

  draw();
  const changed = throttled(1_000, () => {
    const isLarge = (parts.lag?.partitions_total ?? 0) > LARGE_PARTITIONS;
    return load("group", "timeline", "why", "verdicts", "offsets", ...(isLarge ? [] : ["lag"]));
  });
  const sampled = throttled(2_000, () => load("lag", "verdicts"));
  const all = throttled(1_000, async () => {
    await load("group", "timeline", "lag", "why", "verdicts", "offsets");
    if (!state.charts) await loadCharts();
  });
  live(asked, {
    reset: all,
    groups: changed,
    lag: sampled,
    offsets(event) {
      state.charts?.add(event);
      if (parts.lag) {
        takeOffsets(parts.lag, event);
        draw();
      }
    },
  });
  // The right edge of the picture is now; what a group waits for has lasted longer by now.
  const waiting = throttled(2_000, () => load("why"));
  setInterval(() => {
    if (document.hidden) return;
    if (parts.timeline) {
      parts.timeline.to_ms += 1_000;
      draw();
    }
    if (parts.why?.waiting_story?.length) waiting();
  }, 1_000);
  new ResizeObserver(throttled(100, async () => draw())).observe(document.getElementById("timeline"));
  addEventListener("themechange", () => state.charts?.redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => state.charts?.redraw());
}

/** The numbers of an event into those of the last answer. */
function takeOffsets(lag, event) {
  const known = new Map(lag.partitions.map((each) => [`${each.topic} ${each.partition}`, each]));
  for (const [topic, partition, committed, end] of event.partitions) {
    const each = known.get(`${topic} ${partition}`);
    if (!each) continue;
    each.committed_offset = committed;
    each.log_end_offset = end;
    if (end !== null) each.lag = Math.max(0, end - committed);
  }
  lag.lag = event.lag;
}

function heading(name, { group, lag }, errors) {
  return html`
    <p class="quiet"><a href="/console/">All groups</a></p>
    <h1>${shown(name)}</h1>
    ${errors.group?.status === 404
      ? html`<p class="note" role="status">There is no group of this name now. What follows is its history.</p>`
      : nothing}
    ${group
      ? html`<p>${stateChip(group.state)} ${lag ? statusChip(lag.verdict) : nothing}
          <span class="chip">${group.type} group</span>
          ${group.protocol ? html`<span class="chip">${group.protocol_type}/${group.protocol}</span>` : nothing}
          <span class="chip">${group.type === "consumer" ? "epoch" : "generation"} ${number(group.generation)}</span>
          <span class="chip">${number(group.members_total)} ${group.members_total === 1 ? "member" : "members"}</span></p>`
      : nothing}`;
}

function verdictCards(verdicts) {
  if (!verdicts?.verdicts.length) return nothing;
  return html`<section class="card" aria-labelledby="verdicts-title">
    <h2 id="verdicts-title">Verdicts</h2>
    <ul class="plain">${verdicts.verdicts.map((each) => html`<li>
      <span class="chip bad">${each.verdict}</span> since ${timeElement(each.since_ms)}
      ${each.subject ? html`<span class="id">${each.subject}</span>` : nothing}
      <p>${each.summary}</p>
      <p><b>Remedy:</b> ${each.remedy}</p>
    </li>`)}</ul>
  </section>`;
}

function members(name, group, error, state, load) {
  if (!group) return error ? nothing : html`<section class="card"><h2>Members</h2><p class="quiet">Loading …</p></section>`;
  const go = (page) => {
    state.page = page;
    load("group");
  };
  return html`<section class="card" aria-labelledby="members-title">
    <h2 id="members-title">Members</h2>
    ${group.members.length
      ? html`<div class="scroll"><table class="cards">
          <thead><tr><th scope="col">Client</th><th scope="col">Doing</th><th scope="col">Owns</th><th scope="col">Host</th><th scope="col">Session</th><th scope="col">Member id</th></tr></thead>
          <tbody>${group.members.map((each) => member(each, group))}</tbody>
        </table></div>
        ${pager(group.page, group.pages, () => groupLink(name), go)}`
      : html`<p>It has no members.</p>`}
  </section>`;
}

function member(each, group) {
  const isFine = each.doing === "owns its partitions";
  return html`<tr>
    <th scope="row" class="name">${shown(each.client_id)}
      ${each.group_instance_id === null ? nothing : html`<span class="chip">${shown(each.group_instance_id)}</span>`}
      ${each.is_leader ? html`<span class="chip">leader</span>` : nothing}</th>
    <td data-label="Doing"><span class="chip ${isFine ? "good" : "warn"}">${each.doing}</span></td>
    <td data-label="Owns" class="wide">${owned(each)}</td>
    <td data-label="Host" class="id">${each.client_host.replace(/^\//, "")}</td>
    <td data-label="Session" class="number">${each.session_ends_at_ms === null ? "paused" : html`${duration(Math.max(0, each.session_ends_at_ms - group.at_ms))} left`}</td>
    <td data-label="Member" class="id wide">${each.member_id}</td>
  </tr>`;
}

function owned(each) {
  if (each.owned === null) return html`<span class="quiet">not a consumer's assignment</span>`;
  const list = (topics) =>
    topics.map(({ topic, partitions }) => html`<div><a href=${topicLink(topic)}>${topic}</a> <span class="id">${ranges(partitions)}</span></div>`);
  const listed = each.owned.reduce((sum, { partitions }) => sum + partitions.length, 0);
  return html`${list(each.owned)}
    ${listed < each.partitions_total ? html`<div class="quiet">and ${number(each.partitions_total - listed)} more</div>` : nothing}
    ${each.partitions_total === 0 ? html`<span class="quiet">nothing</span>` : nothing}
    ${each.to_give_back_total ? html`<div><span class="chip warn">to give back</span> ${list(each.to_give_back)}</div>` : nothing}`;
}

function lagFacts(lag) {
  if (!lag) return html`<p class="quiet">Nothing is committed.</p>`;
  const fact = (label, value) => html`<div><dt>${label}</dt><dd>${value}</dd></div>`;
  return html`<dl class="facts">
    ${fact("Lag", number(lag.lag))}
    ${fact("Largest of a partition", number(lag.lag_max))}
    ${fact("Behind", lag.seconds_max === null ? "–" : duration(lag.seconds_max * 1000))}
    ${fact("Outlook", lag.outlook.replaceAll("_", " "))}
    ${fact("Caught up in", lag.catch_up_seconds === null ? "–" : duration(lag.catch_up_seconds * 1000))}
    ${fact("Partitions", number(lag.partitions_total))}
  </dl>`;
}

function partitions(lag, charts, draw) {
  if (!lag?.partitions.length) return nothing;
  const choose = (each) => (event) => {
    charts.choose(each.topic, each.partition, event.target.checked);
    draw();
  };
  return html`<div class="scroll"><table>
    <caption>${lag.partitions.length < lag.partitions_total
      ? `The ${number(lag.partitions.length)} partitions with the most lag, of ${number(lag.partitions_total)}.`
      : "Each partition. Marked ones are in the charts."}</caption>
    <thead><tr><th scope="col">Chart</th><th scope="col">Topic</th><th scope="col" class="number">Partition</th>
      <th scope="col" class="number">Committed</th><th scope="col" class="number">End</th><th scope="col" class="number">Lag</th>
      <th scope="col" class="number">Behind</th><th scope="col" class="number">Read/s</th><th scope="col" class="number">Written/s</th>
      <th scope="col">Status</th><th scope="col">Owner</th></tr></thead>
    <tbody>${lag.partitions.map((each) => html`<tr>
      <td><input type="checkbox" aria-label="${each.topic} ${each.partition} in the charts" .checked=${charts?.has(each.topic, each.partition) ?? false}
        ?disabled=${!charts} @change=${choose(each)}></td>
      <td class="name"><a href=${topicLink(each.topic)}>${each.topic}</a></td>
      <td class="number">${each.partition}</td>
      <td class="number">${number(each.committed_offset)}</td>
      <td class="number">${number(each.log_end_offset)}</td>
      <td class="number">${number(each.lag)}</td>
      <td class="number">${each.seconds === null ? "–" : duration(each.seconds * 1000)}</td>
      <td class="number">${rate(each.consumed_per_second)}</td>
      <td class="number">${rate(each.produced_per_second)}</td>
      <td>${statusChip(each.verdict)} ${each.note_words ? html`<span class="quiet">${each.note_words}</span>` : nothing}</td>
      <td class="name">${each.member ? each.member.group_instance_id ?? each.member.client_id : html`<span class="quiet">nobody</span>`}</td>
    </tr>`)}</tbody></table></div>`;
}

const rate = (value) => (value === null ? "–" : value < 10 ? value.toFixed(1) : short(Math.round(value)));

function why(content, error) {
  return html`<section class="card" aria-labelledby="why-title">
    <h2 id="why-title">Why it rebalanced</h2>
    ${error ? (error.status === 404 ? html`<p class="quiet">${error.message}</p>` : failure(error)) : nothing}
    ${content?.waiting_story?.length ? html`<div class="note" role="status">${content.waiting_story.map((line) => html`<div>${line}</div>`)}</div>` : nothing}
    ${content && !content.rebalances.length ? html`<p>It has not rebalanced.</p>` : nothing}
    <ol class="plain">${content?.rebalances.map((each, at) => html`<li><details ?open=${at === 0}>
      <summary>${timeElement(Date.parse(each.began_at))} · <b>${each.cause.replaceAll("_", " ")}</b> ·
        ${each.generation_before} → ${each.generation_after ?? "…"} · ${each.duration_ms === null ? "running" : duration(each.duration_ms)}</summary>
      <pre>${story(content.stories[at])}</pre>
    </details></li>`)}</ol>
    ${content?.more ? html`<p class="quiet">Older ones: <code>rollcall why GROUP</code>.</p>` : nothing}
  </section>`;
}

const story = (lines) => (Array.isArray(lines) ? lines.join("\n") : lines);

function offsetHistory(content, error) {
  return html`<section class="card" aria-labelledby="offsets-title">
    <h2 id="offsets-title">Offset history</h2>
    <p class="quiet">Who moved offsets, apart from the members' ordinary commits.</p>
    ${error ? (error.status === 404 ? html`<p class="quiet">${error.message}</p>` : failure(error)) : nothing}
    ${content && !content.events.length ? html`<p>Nobody did.</p>` : nothing}
    <ol class="plain">${content?.events.map((each) => html`<li>${timeElement(each.at_ms, instant(each.at_ms))}<br>${each.text}</li>`)}</ol>
    ${content?.more ? html`<p class="quiet">Older ones: <code>rollcall history GROUP --offsets</code>.</p>` : nothing}
  </section>`;
}
