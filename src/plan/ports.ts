/** Listen addresses with their keys, that of the health port, and the probe that finds a port that is already taken. */
import { createServer } from 'node:net'
import type { Configuration } from '../config/catalogue.ts'

/** The port is taken or cannot be listened on; the message names port and key. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
}

export interface ListenAddress {
  /** '' for all addresses. */
  readonly host: string
  /** With `server.offset`; 0 for any free port. */
  readonly port: number
  /** The key that sets the port. */
  readonly key: string
}

/** Address of `/healthz`, `/readyz` and `/metrics`. */
export function healthAddress(configuration: Configuration): ListenAddress {
  const { health_port: port, bind_address: host } = configuration.management
  return { host, port: port === 0 ? 0 : port + configuration.server.offset, key: 'management.health_port' }
}

/** Throws ListenError. Binds without `reusePort`, with which a second gateway would bind the same port (D18). */
export async function probePort({ host, port, key }: ListenAddress): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  probe.once('error', (error: NodeJS.ErrnoException) => {
    const address = `${host === '' ? '' : `${host}:`}${port}`
    const cause = error.code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be listened on (${error.code})`
    reject(new ListenError(`port ${address} ${cause}; set ${key}, or server.offset for all ports`))
  })
  probe.listen(host === '' ? { port } : { port, host }, () => probe.close(() => resolve()))
  await promise
}
