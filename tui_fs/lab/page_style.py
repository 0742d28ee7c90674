"""The style sheet of a run's page, for light and dark, wide and narrow screens."""

STYLE = """
:root {
  --paper: #fbfbf9; --card: #ffffff; --ink: #22262b; --soft: #646c75; --hair: #dfe2e5;
  --bar: #5b7fa6; --accent: #b4432c; --accent-wash: #fbeeea; --good: #3f7350;
  --s0: #35608f; --s1: #b07a1e; --s2: #3f7f6b; --s3: #8a5a9c; --s4: #6d6f2b; --s5: #4f9bb5;
  --s6: #a8577a; --s7: #6b6f76;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #16191d; --card: #1d2126; --ink: #dfe3e8; --soft: #97a0aa; --hair: #333940;
    --bar: #6f97c2; --accent: #f0866b; --accent-wash: #35211c; --good: #82bd94;
    --s0: #7aa9dc; --s1: #dcae5c; --s2: #74bfa7; --s3: #c198d3; --s4: #b5b766; --s5: #7cc7df;
    --s6: #dd8fb0; --s7: #a9afb7;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
}
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: 0 0 .6rem; letter-spacing: -.01em; }
h2 { font-size: 1.2rem; margin: 0 0 .9rem; }
h3 { font-size: .95rem; margin: 0 0 .5rem; }
p { margin: 0 0 .5rem; }
section { margin-top: 2.75rem; }
.kind { color: var(--soft); font-size: .85rem; letter-spacing: .04em; margin-bottom: .35rem; }
.question { font-size: 1.15rem; }
.source, .remark, figcaption, footer { color: var(--soft); font-size: .9rem; }
.remark { margin-top: .6rem; max-width: 46rem; }
.warning {
  border-left: 3px solid var(--accent); background: var(--accent-wash); padding: .5rem .8rem;
}
dl { margin: 0; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
.facts { display: flex; flex-wrap: wrap; gap: .3rem 1.8rem; margin: 1rem 0; font-size: .9rem; }
.facts div { display: flex; gap: .45rem; }
.claims { list-style: none; margin: 0; padding: 0; display: grid; gap: .7rem; }
.claims li {
  background: var(--card); border: 1px solid var(--hair); border-left: 4px solid var(--good);
  border-radius: 6px; padding: .75rem 1rem; display: grid; grid-template-columns: 11rem 1fr;
  column-gap: 1.25rem;
}
.claims .fails { border-left-color: var(--accent); }
.claims .untested { border-left-color: var(--hair); }
.verdict { grid-row: 1 / span 2; margin: 0; font-size: .9rem; color: var(--good); }
.fails .verdict { color: var(--accent); font-weight: 600; }
.untested .verdict { color: var(--soft); }
.claim { margin: 0 0 .25rem; font-weight: 550; }
.figures { font-size: .9rem; }
.figures div { display: grid; grid-template-columns: 5rem 1fr; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-size: .9rem; background: var(--card); }
th, td { padding: .38rem .7rem; border-bottom: 1px solid var(--hair); vertical-align: baseline; }
thead th { color: var(--soft); font-weight: 500; white-space: nowrap; text-align: right; }
thead th:first-child { text-align: left; }
tbody th { font-weight: 500; text-align: left; min-width: 9rem; }
td { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums; }
.note { text-align: left; white-space: normal; color: var(--soft); font-style: italic; }
.span { color: var(--soft); font-size: .85em; }
tr.published th, tr.published td { color: var(--soft); padding-top: 0; }
tr.published th { padding-left: 1.6rem; font-weight: 400; }
tbody tr:has(+ tr.published) th, tbody tr:has(+ tr.published) td { border-bottom: 0; }
.pair { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 26rem), 1fr));
  gap: 1.75rem; align-items: start; }
.pair > div { min-width: 0; }
.pair table { font-size: .82rem; }
.pair th, .pair td { padding: .22rem .45rem; }
.pair tbody th { min-width: 0; font-family: ui-monospace, "DejaVu Sans Mono", monospace;
  font-weight: 400; }
.pair tbody tr:last-child > * { font-weight: 600; border-bottom: 0; }
figure {
  margin: 0; background: var(--card); border: 1px solid var(--hair); border-radius: 6px;
  padding: 1rem 1rem .75rem;
}
figcaption { margin-top: .5rem; }
svg { display: block; width: 100%; max-width: 50rem; height: auto; }
.wide > svg { min-width: 28rem; }
svg text { font: 13px system-ui, -apple-system, "Segoe UI", "Noto Sans", sans-serif;
  fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .label, svg .figure { paint-order: stroke; stroke: var(--card); stroke-width: 4px; }
svg .tick, svg .axis { fill: var(--soft); font-size: 12px; }
svg .middle { text-anchor: middle; }
svg .end { text-anchor: end; }
svg .grid { stroke: var(--hair); stroke-width: 1; }
svg .bar { fill: var(--bar); }
svg .whisker { stroke: var(--ink); stroke-width: 1.4; fill: none; }
svg .published { fill: var(--card); stroke: var(--ink); stroke-width: 1.6; }
svg .line { fill: none; stroke-width: 1.8; }
svg .spread { stroke-width: 1.2; opacity: .7; }
svg .point, svg .key { stroke: none; }
.s0 { stroke: var(--s0); fill: var(--s0); } .s1 { stroke: var(--s1); fill: var(--s1); }
.s2 { stroke: var(--s2); fill: var(--s2); } .s3 { stroke: var(--s3); fill: var(--s3); }
.s4 { stroke: var(--s4); fill: var(--s4); } .s5 { stroke: var(--s5); fill: var(--s5); }
.s6 { stroke: var(--s6); fill: var(--s6); } .s7 { stroke: var(--s7); fill: var(--s7); }
details { margin-top: .6rem; font-size: .95rem; }
summary { cursor: pointer; color: var(--soft); }
.flames tbody th { font-family: ui-monospace, "DejaVu Sans Mono", monospace; font-size: .82rem;
  font-weight: 400; }
.flames th span { display: inline-block; }
.share { width: 30%; min-width: 8rem; }
.share > div { background: var(--hair); height: .8rem; border-radius: 2px; }
.share > div > div { background: var(--bar); height: 100%; border-radius: 2px; }
.commands dt { color: var(--ink); font-weight: 550; margin-top: 1rem; }
.commands p { color: var(--soft); font-size: .9rem; margin: 0 0 .3rem; }
pre {
  margin: 0; padding: .6rem .8rem; background: var(--card); border: 1px solid var(--hair);
  border-radius: 6px; overflow-x: auto;
}
code, pre { font: .85rem/1.5 ui-monospace, "DejaVu Sans Mono", monospace; }
.machine { font-size: .9rem; }
.machine div { display: grid; grid-template-columns: 9rem 1fr; padding: .25rem 0;
  border-bottom: 1px solid var(--hair); }
footer { margin-top: 3rem; }
@media (max-width: 40rem) {
  main { padding: 1.5rem 1rem 3rem; }
  h1 { font-size: 1.5rem; }
  .claims li { grid-template-columns: 1fr; }
  .verdict { grid-row: auto; margin-bottom: .25rem; }
  figure { padding: .6rem .5rem; }
  .wide > svg { min-width: 21rem; }
  svg text { font-size: 16px; }
  svg .tick, svg .axis { font-size: 15px; }
}
@media print { section, figure, li { break-inside: avoid; } }
"""
