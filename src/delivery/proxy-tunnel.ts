/** Tunnels through forward proxies (RFC 9110 9.3.6). */
import type { Socket } from 'node:net'

const HEAD_END = '\r\n\r\n'
const HEAD_BYTES_MAX = 16_384
const STATUS_LINE = /^HTTP\/1\.[01] (\d{3})(?: |\r)/

/** The proxy has answered, and opens no tunnel. */
export class ProxyRefused extends Error {
  readonly status: number

  constructor(status: number) {
    super(`the proxy responds to CONNECT with HTTP ${status}`)
    this.status = status
  }
}

/** Resolves when the socket leads to `authority`. Rejects with ProxyRefused, or with an error of the connection. */
export async function openTunnel(socket: Socket, authority: string): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  let received = Buffer.alloc(0)
  const receive = (bytes: Buffer): void => {
    received = Buffer.concat([received, bytes])
    const end = received.indexOf(HEAD_END)
    if (end < 0) {
      if (received.length > HEAD_BYTES_MAX) reject(new Error('the proxy responds to CONNECT with too long a head'))
      return
    }
    const status = Number(STATUS_LINE.exec(received.toString('latin1', 0, end + 2))?.[1] ?? 0)
    if (status < 200 || status > 299) {
      reject(status === 0 ? new Error('the proxy does not speak HTTP') : new ProxyRefused(status))
    } else if (received.length > end + HEAD_END.length) {
      // The server behind a tunnel says nothing before the client's first bytes of TLS.
      reject(new Error('the proxy sends bytes before the tunnel is used'))
    } else resolve()
  }
  const closed = (): void => reject(new Error('the proxy closes the connection'))
  socket.on('data', receive).once('error', reject).once('close', closed)
  socket.write(`CONNECT ${authority} HTTP/1.1\r\nHost: ${authority}\r\n${HEAD_END.slice(2)}`)
  try {
    await promise
  } finally {
    socket.pause().off('data', receive).off('error', reject).off('close', closed)
  }
}
