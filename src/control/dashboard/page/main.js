/** The dashboard: takes the state and its changes from the gateway and has the parts of the page show it. */
import { setCodes } from './codes.js'
import { wireConfiguration } from './configuration.js'
import { Diagram } from './diagram.js'
import { byId, setAttribute, setText } from './dom.js'
import { Failures } from './failures.js'
import { clock, count } from './format.js'
import { applyPatch } from './merge-patch.js'
import { Table } from './tables.js'
import { Views } from './views.js'

const SILENT_MS = 5000
const RETRY_MS = 3000
const ROUND = 'dashboard round'
const ROUNDS_KEPT = 100

const views = new Views()
const failures = new Failures()
let diagrams = null
let statesTable = null
let state = Object.create(null)
let isPaused = false
/** Later states follow a time without news. */
let hasState = false
let heardMs = 0
let source = null
let frame = 0
let hasNewApis = false
let stateNames = []

/** The form tells that the session has ended. */
function leave() {
  source?.close()
  location.assign('/dashboard/sign-in?ended')
}

function setLink(name, text) {
  setAttribute(byId('link'), 'data-state', name)
  // Old numbers look old.
  setAttribute(document.body, 'data-link', name)
  setText(byId('link-text'), text)
}

function setTrouble(text) {
  const since = heardMs === 0 ? '' : `; the numbers are those of ${clock(Date.now() - performance.now() + heardMs)}`
  setLink('trouble', `${text}${since}`)
}

async function start() {
  const response = await fetch('/dashboard/machines')
  if (response.status === 401) return leave()
  const { user, machines, ...codes } = await response.json()
  setText(byId('user'), user)
  setCodes(codes)
  diagrams = new Map(
    Object.entries(machines).map(([side, machine]) => {
      return [side, new Diagram(side, machine, byId(`diagram-${side}`), byId(`detail-${side}`))]
    }),
  )
  stateNames = [...new Set(Object.values(machines).flatMap(({ states }) => states))]
  const column = (title, side) => ({ title, text: row => count(row[side]), sort: row => row[side], isNumber: true })
  statesTable = new Table(
    byId('states-table'),
    'Connections by state',
    [
      { title: 'State', text: (_, name) => name },
      column('Client connections', 'source'),
      column('Backend connections', 'target'),
    ],
    { sort: 1, isDescending: true },
  )
  const past = await fetch('/dashboard/history').catch(() => null)
  if (past?.ok) views.replay(Object.values(await past.json()))
  listen()
}

function listen() {
  source = new EventSource('/dashboard/events')
  source.addEventListener('state', ({ data }) => {
    state = applyPatch(Object.create(null), JSON.parse(data))
    if (hasState) views.forget()
    hasState = true
    heard(true)
  })
  source.addEventListener('patch', ({ data }) => {
    const patch = JSON.parse(data)
    applyPatch(state, patch)
    heard('apis' in patch)
  })
  source.addEventListener('trouble', ({ data }) => setTrouble(JSON.parse(data).cause))
  source.addEventListener('signed-out', leave)
  source.addEventListener('error', () => void reconnect())
}

function isLive() {
  return byId('link').dataset.state === 'live'
}

/** The browser reconnects by itself after a lost connection, and never after a refusal, as of an ended session. */
async function reconnect() {
  setTrouble('disconnected, trying again')
  if (source.readyState !== EventSource.CLOSED) return
  const response = await fetch('/dashboard/machines').catch(() => null)
  if (response?.status === 401) return leave()
  if (response?.ok) setTrouble('there are as many viewers as may be, trying again')
  setTimeout(listen, RETRY_MS)
}

/** `hasApis`: the rows of APIs have changed, which come every few rounds. */
function heard(hasApis) {
  hasNewApis ||= hasApis
  heardMs = performance.now()
  setLink('live', isPaused ? 'paused' : 'live')
  if (frame === 0) frame = requestAnimationFrame(render)
  // A page in the background gets no frames; its history goes on.
  else if (document.hidden) render()
}

function render() {
  const begun = performance.now()
  cancelAnimationFrame(frame)
  frame = 0
  views.show(state, isPaused || document.hidden, hasNewApis)
  hasNewApis = false
  if (!isPaused && !document.hidden) {
    const states = state.live?.states ?? {}
    for (const [side, diagram] of diagrams) diagram.show(states[side] ?? {})
    const rowOf = name => ({ source: states.source?.[name] ?? 0, target: states.target?.[name] ?? 0 })
    statesTable.show(() => stateNames.map(name => [name, rowOf(name)]))
    failures.show(state.lists?.failures, state.lists?.failuresOmitted)
  }
  // For the profiler of the browser.
  if (performance.getEntriesByName(ROUND).length >= ROUNDS_KEPT) performance.clearMeasures(ROUND)
  performance.measure(ROUND, { start: begun, end: performance.now() })
}

function wireTheme() {
  const select = byId('theme')
  const apply = () => {
    if (select.value === 'auto') document.documentElement.removeAttribute('data-theme')
    else document.documentElement.setAttribute('data-theme', select.value)
    views.redraw()
  }
  select.value = localStorage.getItem('theme') ?? 'auto'
  apply()
  select.addEventListener('change', () => {
    localStorage.setItem('theme', select.value)
    apply()
  })
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', () => views.redraw())
}

byId('pause').addEventListener('click', ({ currentTarget: button }) => {
  isPaused = !isPaused
  setAttribute(button, 'aria-pressed', isPaused)
  setText(button, isPaused ? 'Go on' : 'Pause')
  setLink('live', isPaused ? 'paused' : 'live')
})
setInterval(() => {
  if (heardMs > 0 && performance.now() - heardMs > SILENT_MS && isLive()) setTrouble('no news from the gateway')
}, 1000)
wireTheme()
wireConfiguration(leave)
start().catch(() => setLink('trouble', 'the gateway did not answer; reload the page'))
