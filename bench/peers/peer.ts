/** The interface of a proxy under test. */
import type { Certificate } from '../certificate.ts'
import { LOAD_CORE, PROXY_CORE, type Program } from '../program.ts'
import type { Capability } from '../scenarios.ts'

export interface PeerOptions {
  readonly port: number
  /** The capability that the scenario needs. */
  readonly capability: Capability
  readonly downloadPort: number
  readonly uploadPort: number
  /** Port of the WebSocket backend. */
  readonly echoPort: number
  /** Ports of two equal backends, of which one will fail. */
  readonly replicaPorts: readonly [number, number]
  /** Certificate of the proxy; undefined where clients connect without TLS. */
  readonly certificate: Certificate | undefined
  /** Certificate of the backend, to be verified, if the download port is a TLS port. */
  readonly backendCertificate: Certificate | undefined
  /** For files that are the same at every start; deleted after the run. */
  readonly sharedFolder: string
  /** An empty folder of the peer's own; deleted after the run. */
  readonly folder: string
}

export interface Peer {
  readonly name: string
  readonly capabilities: readonly Capability[]
  /** A variant that differs only for large bodies; other scenarios leave it out unless it is named. */
  readonly largeBodiesOnly?: true
  /** Left out of every scenario unless it is named. */
  readonly onlyWhenNamed?: true
  /** The reason why the peer cannot run here, or has not the capability here; undefined for none. */
  missing(capability?: Capability): string | undefined
  /** The version, for the record. */
  version(): string
  /** Starts the peer on the proxy's core; resolves when it accepts requests. */
  start(options: PeerOptions): Promise<Program>
}

/** Threads that serve requests, and the processors of the proxy; the load has the second one in any case. */
export function workersOf(capability: Capability): { readonly workers: number; readonly cores: string } {
  if (capability !== 'two-cores') return { workers: 1, cores: `${PROXY_CORE}` }
  return { workers: 2, cores: `${PROXY_CORE},${LOAD_CORE}` }
}

/** Returns whether a scenario transforms bodies, for which nginx needs njs and HAProxy needs Lua. */
export function isMediating(capability: Capability): boolean {
  return capability === 'mediation' || capability === 'mediation-delay'
}

/** Settings of all proxies in front of the two equal backends. */
export const FAIL_OVER_SETTINGS = {
  /** A backend without a response for this time is considered failed. */
  timeoutMs: 1000,
  /** A failed backend gets no requests for this time. */
  suspendMs: 1000,
} as const
