/** Ports to listen on, asked for before anybody does. */
import { createServer } from 'node:net'
import type { Configuration } from '../config/catalogue.ts'

/** The port is taken, or cannot be listened on; the message names it. */
export class CannotListen extends Error {
  override readonly name = 'CannotListen'
}

export interface Address {
  /** '' for all addresses. */
  readonly host: string
  /** With the offset in it; 0: any free one. */
  readonly port: number
  /** That sets it. */
  readonly key: string
}

/** Where health and readiness are asked for. */
export function healthAddress(configuration: Configuration): Address {
  const { health_port: wanted, bind_address: host } = configuration.management
  return { host, port: wanted === 0 ? 0 : wanted + configuration.server.offset, key: 'management.health_port' }
}

/** `reusePort` lets a second listener bind in silence, so the port is bound once without it first (D18). */
export async function claimPort({ host, port, key }: Address): Promise<void> {
  if (port === 0) return
  const probe = createServer()
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  probe.once('error', (error: NodeJS.ErrnoException) => {
    const where = `${host === '' ? '' : `${host}:`}${port}`
    const why = error.code === 'EADDRINUSE' ? 'is taken by another program' : `cannot be listened on (${error.code})`
    reject(new CannotListen(`port ${where} ${why}; set ${key}, or server.offset for all ports`))
  })
  probe.listen(host === '' ? { port } : { port, host }, () => probe.close(() => resolve()))
  await promise
}
