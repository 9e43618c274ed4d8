/** Options that the management listener and its HTTPS server share: apps, options, identity. */
import type { HttpBindings } from '@hono/node-server'
import type { ManagementPlan } from '../plan/management-plan.ts'
import type { EventLog } from '../observe/events.ts'
import type { AccessArea } from './access-control.ts'

/** The `Bindings` that hono gives an app with a request. */
export interface ClientBindings extends HttpBindings {
  /**
   * The peer; for a request from this machine, which a gateway may have forwarded (`/token`), the last entry of
   * X-Forwarded-For. Any program on this machine can set that field.
   */
  readonly clientAddress: string
}

/** An app and the paths that it serves. */
export interface MountedApp {
  /** Each stands for itself and everything below it; the longest one wins. */
  readonly paths: readonly string[]
  readonly area: AccessArea
  /**
   * hono's `fetch`, which gets the whole path. An error is logged here and becomes a 500; a hono app rethrows it by
   * `app.onError(error => { throw error })`, because hono would print it.
   */
  readonly fetch: (request: Request, bindings: ClientBindings) => Response | Promise<Response>
}

export interface ListenerOptions {
  /** Called once, with the first connection. */
  readonly apps: () => Promise<readonly MountedApp[]>
  readonly events: Pick<EventLog, 'report'>
  /** A socket that listens already; left out, or NEW_SOCKET: it binds one. */
  readonly fd?: number
  /** Milliseconds for the head of a request. */
  readonly headMs?: number
}

/** Node's default. */
export const BACKLOG = 511

/** TLS options of the listener. */
export function secureContext({ tls: { identity, minVersion, maxVersion, ciphers } }: ManagementPlan) {
  return { ...identity, minVersion, maxVersion, honorCipherOrder: true, ...(ciphers === '' ? {} : { ciphers }) }
}
