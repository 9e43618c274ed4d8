/**
 * Timelines of the open exchanges of a thread: each change of state of both machines with its time, in memory that is
 * allocated once. The flight recorder reads the timeline of an exchange that failed or was slow, and releases all.
 * Plain functions on arrays of the module: V8 then knows their addresses, and a step costs some nanoseconds.
 */
import { EventClock } from '../runtime/event-clock.ts'
import { EVENT_NAMES, type EventName, type State, STATE_NAMES, type StateName } from './states.ts'
import { SOURCE, TARGET, type Table } from './transitions.ts'

/** The id of no timeline. */
export const NO_TIMELINE = 0

const SLOT_BITS = 15
const SLOTS = 1 << SLOT_BITS
const SLOT_MASK = SLOTS - 1
/** Generations tell the exchanges of a slot apart, so a machine with an old id changes nothing. */
const GENERATION = SLOTS
const ID_MAX = 0x7fffffff

const STEP_BITS = 5
const STEPS = 1 << STEP_BITS
/** Behind it the last step is replaced: an exchange with so many steps ends as its last one says. */
const LAST_STEP = STEPS - 1

/** The code of a step: side, bit of FIN, state before, and event; the last two have five bits each. */
const OF_TARGET = 1 << 11
const EVENT_BITS = 5
const FIVE_BITS = 31
/** In place of an event: a backend connection has taken the exchange. */
const ASSIGNED = 31

// Only the pages that slots in use touch become memory.
const times = new Float64Array(SLOTS * STEPS)
const codes = new Uint16Array(SLOTS * STEPS)
/** Steps by slot; more than STEPS where some were dropped. */
const counts = new Uint32Array(SLOTS)
/** Milliseconds of the last body bytes by slot and direction; 0: none, or all of them in one read. */
const bytesMs = new Float64Array(SLOTS * 2)
/** Id by slot; negative: the id of the next exchange, of a slot that is free; 0: never used. */
const ids = new Int32Array(SLOTS)
// The slot of NO_TIMELINE belongs to none.
ids[0] = -1
const free = new Uint16Array(SLOTS)
let freeCount = 0
/** The first slot that was never used. */
let unused = 1
let isOn = false
let clock = new EventClock()

/** Off: exchanges that begin get no timeline. `by`: the clock of the reactor. */
export function recordTimelines(on: boolean, by = clock): void {
  isOn = on
  clock = by
}

/** Starts the timeline of an exchange; NO_TIMELINE where all slots are in use. */
export function beginTimeline(): number {
  if (!isOn) return NO_TIMELINE
  const slot = freeCount > 0 ? free[--freeCount]! : newSlot()
  if (slot === 0) return NO_TIMELINE
  const next = ids[slot]!
  const id = next === 0 ? GENERATION + slot : -next
  ids[slot] = id
  counts[slot] = 0
  bytesMs[slot << 1] = 0
  bytesMs[(slot << 1) + 1] = 0
  return id
}

function newSlot(): number {
  return unused < SLOTS ? unused++ : 0
}

/** The machine of a side has changed its state. `cell`: index of the cell of the table that it has taken. */
export function recordStep(id: number, isTarget: boolean, cell: number): void {
  const slot = id & SLOT_MASK
  if (ids[slot] !== id) return
  const count = counts[slot]!
  const at = (slot << STEP_BITS) + (count < LAST_STEP ? count : LAST_STEP)
  clock.read()
  times[at] = clock.cell[0]!
  codes[at] = isTarget ? OF_TARGET | cell : cell
  counts[slot] = count + 1
}

/** A backend connection in `state` has taken the exchange. */
export function recordAssignment(id: number, state: State): void {
  recordStep(id, true, (state << EVENT_BITS) | ASSIGNED)
}

/** A piece of a body has passed that is not its last one. */
export function recordBytes(id: number, isOfResponse: boolean): void {
  const slot = id & SLOT_MASK
  if (ids[slot] !== id) return
  clock.read()
  bytesMs[(slot << 1) + (isOfResponse ? 1 : 0)] = clock.cell[0]!
}

/** The exchange is over. */
export function releaseTimeline(id: number): void {
  const slot = id & SLOT_MASK
  if (ids[slot] !== id) return
  ids[slot] = id > ID_MAX - GENERATION ? -(GENERATION + slot) : -(id + GENERATION)
  free[freeCount++] = slot
}

/** Number of timelines that were begun and not released. */
export function openTimelines(): number {
  return unused - 1 - freeCount
}

/** A copy of the steps of one exchange, for `readTimeline`. */
export interface RecordedSteps {
  readonly times: Float64Array
  readonly codes: Uint16Array
  readonly bytesMs: Float64Array
  readonly dropped: number
}

export function copySteps(id: number): RecordedSteps {
  const slot = id & SLOT_MASK
  const at = slot << STEP_BITS
  const end = at + Math.min(counts[slot]!, STEPS)
  return {
    times: times.slice(at, end),
    codes: codes.slice(at, end),
    bytesMs: bytesMs.slice(slot << 1, (slot + 1) << 1),
    dropped: Math.max(0, counts[slot]! - STEPS),
  }
}

interface TimelineStep {
  /** Microseconds since the start of the exchange. */
  readonly us: number
  readonly side: 'source' | 'target'
  /** `ASSIGNED`: a backend connection in `state` has taken the exchange. */
  readonly event: EventName | 'ASSIGNED'
  /** State after the event. */
  readonly state: StateName
}

export interface Timeline {
  readonly steps: readonly TimelineStep[]
  /** Number of steps that are missing in front of the last one. */
  readonly dropped: number
  /** Microseconds since the start at the last body bytes but the end, by direction; -1: the body came in one piece. */
  readonly requestBytesUs: number
  readonly responseBytesUs: number
}

export function readTimeline({ times, codes, bytesMs, dropped }: RecordedSteps): Timeline {
  const startMs = times[0] ?? 0
  const since = (ms: number) => Math.max(0, Math.round((ms - startMs) * 1000))
  const [requestMs = 0, responseMs = 0] = bytesMs
  return {
    steps: [...times].map((ms, step) => ({ us: since(ms), ...readStep(codes[step]!) })),
    dropped,
    requestBytesUs: requestMs === 0 ? -1 : since(requestMs),
    responseBytesUs: responseMs === 0 ? -1 : since(responseMs),
  }
}

function readStep(code: number): Omit<TimelineStep, 'us'> {
  const side = code >= OF_TARGET ? 'target' : 'source'
  const before = STATE_NAMES[(code >> EVENT_BITS) & FIVE_BITS]!
  const event = code & FIVE_BITS
  if (event === ASSIGNED) return { side, event: 'ASSIGNED', state: before }
  const name = EVENT_NAMES[event]!
  const table: Table = side === 'target' ? TARGET : SOURCE
  return { side, event: name, state: table[before][name]! }
}
