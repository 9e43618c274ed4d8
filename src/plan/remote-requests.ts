/** Limits of the control thread's requests to other servers; `explain` calculates with them. */
import type { Configuration } from '../config/catalogue.ts'

export interface RemoteRequestLimits {
  /** Concurrent requests to all hosts together. */
  readonly requestsMax: number
  /** Connections to one host and port. */
  readonly perHostMax: number
  /** Idle connections kept open per host. */
  readonly idleMax: number
  /** Requests that wait for one host. */
  readonly waitingMax: number
}

const WAITING_MAX = 1024

export function remoteRequestLimits(configuration: Configuration): RemoteRequestLimits {
  const client = configuration['apim.http_client']
  return {
    requestsMax: client.max_total,
    perHostMax: Math.min(client.default_max_per_route, client.max_total),
    idleMax: configuration['apim.key_manager']['pool.max_idle'],
    waitingMax: WAITING_MAX,
  }
}
