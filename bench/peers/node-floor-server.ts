/**
 * The floor of Node: answers every request with the same 429 from the bytes of a read on a libuv handle, without a
 * parser. A read holds one whole request, as wrk sends it; a read that ends otherwise is not answered.
 *
 *     node node-floor-server.ts PORT
 */
import { createServer } from 'node:net'
import { bindHandles, type TcpHandle } from '../../src/socket/handle-socket.ts'

const READ_BYTES = 65_536
const END_OF_HEAD = 0x0d0a0d0a
const BODY = JSON.stringify({
  fault: {
    code: 900804,
    type: 'Status report',
    message: 'Subscription level throttle out',
    description: 'You have exceeded your quota',
    nextAccessTime: '2026-Dec-01 00:00:00+0000 UTC',
  },
})
/** As long as the refusal of the gateway. */
const RESPONSE = Buffer.from(`HTTP/1.1 429 Too Many Requests\r
Content-Type: application/json; charset=UTF-8\r
Retry-After: 604800\r
RateLimit-Policy: "Used";q=1\r
RateLimit: "Used";r=0;t=604800\r
Content-Length: ${BODY.length}\r
activityid: 6f1c2a34-9f1b-4b7e-8c58-0c2f5d7e9a10\r
Date: Mon, 23 Nov 2026 00:00:00 GMT\r
\r
${BODY}`)

const [port] = process.argv.slice(2).map(Number)
const { streamState, readResult } = bindHandles()
const memory = Buffer.alloc(READ_BYTES)

function onread(this: TcpHandle): undefined {
  const count = streamState[readResult]!
  if (count < 0) this.close()
  else if (count >= 4 && memory.readUInt32BE(count - 4) === END_OF_HEAD) this.writeBuffer(null, RESPONSE)
  return undefined
}

const server = createServer()
server.listen({ port, host: '127.0.0.1', backlog: 4096 }, () => {
  const listener = (server as unknown as { _handle: { onconnection(status: number, handle: TcpHandle): void } })._handle
  listener.onconnection = (status, handle) => {
    if (status !== 0) return
    handle.setNoDelay(true)
    handle.socket = handle
    handle.onread = onread
    handle.useUserBuffer(memory)
    handle.readStart()
  }
  const { port: listening } = server.address() as { port: number }
  console.log(`listening on ${listening}`)
})
