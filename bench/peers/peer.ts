/** What the bench needs to know of a proxy under test, whichever it is. */
import type { Certificate } from '../certificate.ts'
import type { Program } from '../program.ts'
import type { Ability } from '../scenarios.ts'

/** Where a peer listens and what it stands in front of. */
export interface Place {
  readonly port: number
  /** What is about to be asked of it. */
  readonly ability: Ability
  readonly downloadPort: number
  readonly uploadPort: number
  /** WebSocket messages come back from here. */
  readonly echoPort: number
  /** Two backends that do the same, of which one will fall ill. */
  readonly twinPorts: readonly [number, number]
  /** For the TLS port; undefined where clients connect without TLS. */
  readonly certificate: Certificate | undefined
  /** Of the download port, if that is one for TLS: to be verified. */
  readonly backendCertificate: Certificate | undefined
  /** For what is the same at every start, gone after the run. */
  readonly shared: string
  /** An empty folder of the peer's own, gone after the run. */
  readonly folder: string
}

export interface Peer {
  readonly name: string
  readonly abilities: readonly Ability[]
  /** A variant that differs only where bodies are large; it is left out of the other scenarios unless named. */
  readonly forBodiesOnly?: true
  /** Left out of every scenario unless named. */
  readonly onlyWhenNamed?: true
  /** Why it cannot run here, or undefined when it can. */
  missing(): string | undefined
  /** Its version, for the record. */
  version(): string
  /** Starts it on the proxy's core; resolves when it takes requests. */
  start(place: Place): Promise<Program>
}

/** How every proxy is told to treat the twins. */
export const TWINS = {
  /** A backend that did not answer for so long is taken to be ill. */
  timeoutMs: 1000,
  /** One that was ill is left alone for so long. */
  suspendMs: 1000,
} as const
