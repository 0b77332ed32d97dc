// Timeline: a lane for each member, with what it was doing; rebalances as bands behind them.
import { duration, html, instant, nothing, number, svg, timeOfDay } from "./common.js";

const LANE = 24;
const TOP = 22;
const WORDS = {
  owned: "owned its partitions",
  to_rejoin: "had to rejoin",
  waited: "had joined, waited",
  syncing: "waited for its assignment",
  revoking: "had to give partitions back",
  away: "was away",
};
const MARKS = { joined: "joined", synced: "synced: has its assignment", replaced: "another process came", gone: "gone" };
const STEPS_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14_400, 21_600];

export function drawTimeline(content, rangeSeconds) {
  const to = content.to_ms;
  const from = Math.max(content.from_ms, to - rangeSeconds * 1000);
  const { lanes } = content;
  if (!lanes.length) return html`<p>No member in this time.</p>`;
  const wide = Math.max(280, (document.getElementById("timeline")?.clientWidth ?? 900) - 2);
  const left = wide < 600 ? 96 : 190;
  const x = (ms) => left + ((Math.min(Math.max(ms, from), to) - from) / Math.max(1, to - from)) * (wide - left - 6);
  const high = TOP + lanes.length * LANE + 4;
  const label = `${number(lanes.length)} members from ${instant(from)} to ${instant(to)}; ${number(content.rebalances.length)} rebalances. The same as a table follows.`;
  return html`
    <ul class="legend" aria-hidden="true">
      ${Object.entries({ owned: "owns", to_rejoin: "has to rejoin", waited: "joined, waits", syncing: "waits for assignment", revoking: "gives back", away: "away" })
        .map(([doing, text]) => html`<li><svg width="18" height="12"><rect class="span ${doing}" width="18" height=${HEIGHT[doing]} y=${(12 - HEIGHT[doing]) / 2} rx="2"></rect></svg> ${text}</li>`)}
      <li><svg width="12" height="12"><path class="mark joined" d="M6 1l5 9h-10z"></path></svg> joined</li>
      <li><svg width="12" height="12"><circle class="mark synced" cx="6" cy="6" r="4"></circle></svg> synced</li>
      <li><svg width="12" height="12"><path class="mark gone" d="M2 2l8 8M10 2l-8 8"></path></svg> gone</li>
    </ul>
    <div class="timeline"><svg width=${wide} height=${high} viewBox="0 0 ${wide} ${high}" role="img" aria-label=${label}>
      ${content.rebalances.map((each) => band(each, x, from, to, high))}
      ${ticks(from, to, wide - left).map((ms) => svg`<line class="tick" x1=${x(ms)} x2=${x(ms)} y1=${TOP - 4} y2=${high}></line><text class="time" x=${x(ms)} y="12" text-anchor=${x(ms) > wide - 30 ? "end" : "middle"}>${timeOfDay(ms)}</text>`)}
      ${content.restarts_ms.filter((ms) => ms >= from).map((ms) => svg`<line class="restart" x1=${x(ms)} x2=${x(ms)} y1=${TOP - 4} y2=${high}><title>The coordinator started: ${instant(ms)}</title></line>`)}
      ${lanes.map((each, at) => lane(each, TOP + at * LANE, x, from, to, left, wide))}
    </svg></div>
    ${content.lanes_left_out ? html`<p class="quiet">${number(content.lanes_left_out)} more members are left out.</p>` : nothing}
    ${content.more ? html`<p class="quiet">Before ${instant(content.from_ms)} there is more: choose a shorter time, or <code>rollcall history GROUP</code>.</p>` : nothing}
    <details><summary>The same as a table</summary>${table(content, from, to)}</details>`;
}

const HEIGHT = { owned: 12, to_rejoin: 4, waited: 8, syncing: 10, revoking: 8, away: 2 };

function band(each, x, from, to, high) {
  const ended = each.ended_ms ?? to;
  if (ended < from) return nothing;
  const begin = x(each.began_ms);
  const words = `${each.cause.replaceAll("_", " ")}: ${each.generation_before} → ${each.generation_after ?? "…"}, ${each.ended_ms === null ? "running" : duration(each.ended_ms - each.began_ms)}, ${each.end}`;
  return svg`<rect class="band" x=${begin} y=${TOP - 4} width=${Math.max(1.5, x(ended) - begin)} height=${high - TOP + 4}><title>${words}, began ${instant(each.began_ms)}</title></rect>`;
}

function lane(each, top, x, from, to, left, wide) {
  const middle = top + LANE / 2;
  const name = each.group_instance_id ?? (each.client_id || each.member_id);
  const most = left < 100 ? 12 : 25;
  const text = [...name].length > most ? `${[...name].slice(0, most - 1).join("")}…` : name;
  return svg`<g class=${each.gone_at_ms === null ? "lane" : "lane over"}>
    <line class="rule" x1=${left} x2=${wide} y1=${middle} y2=${middle}></line>
    <text class="who" x="0" y=${middle + 4}>${text}<title>${name}, ${each.client_host}, ${each.member_id}</title></text>
    ${each.spans.map(([doing, began, ended]) => {
      const end = ended ?? to;
      if (end < from) return nothing;
      const height = HEIGHT[doing];
      return svg`<rect class="span ${doing}" x=${x(began)} y=${middle - height / 2} width=${Math.max(1, x(end) - x(began))} height=${height} rx="2"><title>${name} ${WORDS[doing]}: ${instant(began)}, ${duration(end - began)}</title></rect>`;
    })}
    ${each.marks.filter(([, ms]) => ms >= from).map(([mark, ms, note]) => {
      const at = x(ms);
      const words = html`${MARKS[mark]}${note ? ` (${note.replaceAll("_", " ")})` : ""}: ${instant(ms)}`;
      if (mark === "joined") return svg`<path class="mark joined" d="M${at} ${middle - 6}l4 8h-8z"><title>${words}</title></path>`;
      if (mark === "synced") return svg`<circle class="mark synced" cx=${at} cy=${middle} r="3"><title>${words}</title></circle>`;
      return svg`<path class="mark ${mark}" d="M${at - 4} ${middle - 4}l8 8M${at + 4} ${middle - 4}l-8 8"><title>${words}</title></path>`;
    })}
  </g>`;
}

function ticks(from, to, wide) {
  const most = Math.max(2, Math.floor(wide / 90));
  const step = (STEPS_S.find((seconds) => (to - from) / 1000 / seconds <= most) ?? 43_200) * 1000;
  const found = [];
  for (let ms = Math.ceil(from / step) * step; ms <= to; ms += step) found.push(ms);
  return found;
}

function table(content, from, to) {
  return html`<div class="scroll"><table>
    <thead><tr><th scope="col">Member</th><th scope="col">From</th><th scope="col">For</th><th scope="col">Doing</th></tr></thead>
    <tbody>${content.lanes.map((each) =>
      each.spans.filter(([, , ended]) => (ended ?? to) >= from).slice(-50).map(([doing, began, ended]) => html`<tr>
        <th scope="row" class="name">${each.group_instance_id ?? (each.client_id || each.member_id)}</th>
        <td>${instant(began)}</td><td>${duration((ended ?? to) - began)}</td><td>${WORDS[doing]}</td></tr>`),
    )}</tbody></table></div>`;
}
