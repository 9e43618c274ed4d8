/**
 * Who watches, while somebody does: one tracer for each thread, null otherwise. Every place that tells it something
 * asks for null first, and that is all that it costs when nobody watches.
 */
import type { Machine } from './machine.ts'
import type { Event, State } from './states.ts'

export interface Tracer {
  /** A machine has taken an event. */
  moved(machine: Machine, from: State, event: Event, to: State): void
  /** Something that belongs to an exchange and is no event of a machine. */
  noted(exchange: object, what: string, detail: string): void
  /** A backend connection has taken the exchange. */
  taken(exchange: object, machine: Machine, what: string, detail: string): void
}

export let tracer: Tracer | null = null

/** Null: nobody watches any more. */
export function watch(watcher: Tracer | null): void {
  tracer = watcher
}
