/**
 * Tracer of a thread, null while no operator traces. Callers test for null first, so tracing costs nothing when off.
 */
import type { Machine } from './machine.ts'
import type { Event, State } from './states.ts'

/** Parts of messages that a trace keeps, beside their sizes. */
export interface Collected {
  readonly payloads: boolean
  readonly properties: boolean
}

export const NOTHING_COLLECTED: Collected = { payloads: false, properties: false }

export interface Tracer {
  readonly collects: Collected
  /** A machine has taken an event. */
  transition(machine: Machine, from: State, event: Event, to: State): void
  /** A step of an exchange that is no event of a machine. */
  note(exchange: object, what: string, detail: string): void
  /** A backend connection has taken the exchange. */
  assign(exchange: object, machine: Machine, what: string, detail: string): void
}

export let tracer: Tracer | null = null

/** Null ends the trace. */
export function setTracer(next: Tracer | null): void {
  tracer = next
}
