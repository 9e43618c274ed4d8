/** A backend that answers each request after a recorded delay, in a thread of its own; without delays, a stub. */
import { createServer } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { parentPort, workerData } from 'node:worker_threads'
import { SeededRandom } from './statistics.ts'

export interface SyntheticPlan {
  /** One of them is drawn for each request; empty: none. */
  readonly delaysMs: readonly number[]
  readonly bodyBytes: number
  readonly seed: number
}

const HEAD_END = '\r\n\r\n'
const HEAD_CHARS_MAX = 1_048_576

const { delaysMs, bodyBytes, seed } = workerData as SyntheticPlan
const random = new SeededRandom(seed)
const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: ${bodyBytes}\r\n\r\n`
const response = head + 'x'.repeat(bodyBytes)

function serve(socket: Socket): void {
  let received = ''
  socket.setEncoding('latin1').setNoDelay(true)
  socket.on('error', () => socket.destroy())
  socket.on('data', (piece: string) => {
    received += piece
    for (let end = endOf(received); end !== -1; end = endOf(received)) {
      received = received.slice(end)
      answer(socket)
    }
    if (received.length > HEAD_CHARS_MAX) socket.destroy()
  })
}

/** End of the first request; -1 while it is incomplete. The gateway sends a request after the response to the last. */
function endOf(text: string): number {
  const head = text.indexOf(HEAD_END)
  if (head === -1) return -1
  const fields = text.slice(0, head)
  if (/\r\ntransfer-encoding: *chunked/i.test(fields)) {
    const end = text.indexOf('\r\n0\r\n\r\n', head)
    return end === -1 ? -1 : end + '\r\n0\r\n\r\n'.length
  }
  const length = Number(/\r\ncontent-length: *(\d+)/i.exec(fields)?.[1] ?? 0)
  const end = head + HEAD_END.length + length
  return text.length < end ? -1 : end
}

function answer(socket: Socket): void {
  const delay = delaysMs.length === 0 ? 0 : delaysMs[random.below(delaysMs.length)]!
  if (delay === 0) socket.write(response)
  else setTimeout(() => socket.writable && socket.write(response), delay)
}

const server = createServer(serve).listen(0, '127.0.0.1', () => {
  parentPort!.postMessage((server.address() as AddressInfo).port)
})
