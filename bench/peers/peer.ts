/** What the bench needs to know of a proxy under test, whichever it is. */
import type { Program } from '../program.ts'

/** Where a peer listens and what it stands in front of. */
export interface Place {
  readonly port: number
  readonly downloadPort: number
  readonly uploadPort: number
  /** An empty folder of the peer's own, gone after the run. */
  readonly folder: string
}

export interface Peer {
  readonly name: string
  /** A variant that differs only where bodies are large; it is left out of the other scenarios unless named. */
  readonly forBodiesOnly?: true
  /** Why it cannot run here, or undefined when it can. */
  missing(): string | undefined
  /** Its version, for the record. */
  version(): string
  /** Starts it on the proxy's core; resolves when it takes requests. */
  start(place: Place): Promise<Program>
}
