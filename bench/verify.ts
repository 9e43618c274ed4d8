/**
 * Verifies a peer with one request before it is measured. A peer that responds with an error page, loses body bytes, or
 * ignores `Connection: close` would otherwise look very fast.
 */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { isDeepStrictEqual } from 'node:util'
import { connectTls } from './certificate.ts'
import { type LoadPlan, type RequestSpec, requestFields } from './load/load-plan.ts'
import { requestHead } from './request-head.ts'
import { tokenIssuer } from './token-issuer.ts'
import { acceptValue, ECHO_PATH, maskedFrame, unmaskedFrame, upgradeRequest } from './websocket.ts'

/** The first message of a worker takes seconds on a busy machine. */
const TIMEOUT_MS = 10_000
const HEAD_END = '\r\n\r\n'

interface ReceivedResponse {
  readonly status: number
  readonly head: string
  readonly body: Buffer
  readonly closed: boolean
}

/** One request over a connection of its own; `untilClose` waits until the peer closes the connection. */
export function sendRequest(
  port: number,
  request: Buffer,
  untilClose: boolean,
  chainFile?: string,
): Promise<ReceivedResponse> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0)
    const send = (): void => void socket.write(request)
    const socket =
      chainFile === undefined ? connect({ port, host: '127.0.0.1' }, send) : connectTls({ port }, chainFile, send)
    const timer = setTimeout(() => settle(false), TIMEOUT_MS)
    function settle(closed: boolean): void {
      clearTimeout(timer)
      socket.destroy()
      const end = received.indexOf(HEAD_END)
      const head = received.toString('latin1', 0, Math.max(0, end))
      if (end < 0) reject(new Error('no complete response head'))
      else resolve({ status: Number(head.slice(9, 12)), head, body: received.subarray(end + 4), closed })
    }
    socket.on('data', bytes => {
      received = Buffer.concat([received, bytes as Buffer])
      if (!untilClose && isComplete(received)) settle(false)
    })
    socket.once('end', () => settle(true))
    socket.once('error', error => {
      clearTimeout(timer)
      reject(error)
    })
  })
}

function isComplete(received: Buffer): boolean {
  const end = received.indexOf(HEAD_END)
  if (end < 0) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(received.toString('latin1', 0, end))
  return length !== null && received.length - end - 4 >= Number(length[1])
}

/** Throws with the reason if a peer does not do what the plan measures. */
export async function verify(plan: LoadPlan): Promise<void> {
  if (plan.request !== undefined) return verifyRequests(plan, plan.request)
  const head = requestHead(plan.uploadBytes > 0 ? 'POST' : 'GET', plan.path, requestFields(plan))
  const request = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(plan.uploadBytes, 'x')])
  const response = await sendRequest(plan.port, request, plan.connectionPerRequest, plan.certificate?.chainFile)
  if (response.status !== 200) throw new Error(`returned status ${response.status} instead of 200`)
  if (plan.uploadBytes > 0) {
    const arrived = Number(response.body.toString('latin1'))
    if (!(arrived >= plan.uploadBytes)) throw new Error(`passed on ${arrived} of ${plan.uploadBytes} body bytes`)
  } else if (response.body.length !== plan.downloadBytes) {
    throw new Error(`returned ${response.body.length} of ${plan.downloadBytes} body bytes`)
  }
  if (!plan.connectionPerRequest) return
  if (!response.closed) throw new Error('kept the connection open after Connection: close')
  if (!/\r\nconnection: *close/i.test(response.head)) throw new Error('closed without the field Connection: close')
}

/** All paths would take too long, and most differ only in an identifier. */
const PATHS_VERIFIED_MAX = 20

async function verifyRequests(plan: LoadPlan, request: RequestSpec): Promise<void> {
  const { method, paths, expectedStatuses, uploadBytes, body: sent = 'x'.repeat(uploadBytes), downloadBytes } = request
  for (const path of paths.slice(0, PATHS_VERIFIED_MAX)) {
    const head = requestHead(method, path, requestFields(plan))
    const message = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.from(sent)])
    const { status, body } = await sendRequest(plan.port, message, false)
    if (!expectedStatuses.includes(status))
      throw new Error(`returned status ${status} instead of ${expectedStatuses.join(' or ')} for ${path}`)
    if (downloadBytes !== null && body.length !== downloadBytes)
      throw new Error(`returned ${body.length} of ${downloadBytes} body bytes for ${path}`)
  }
}

/** Throws if the backend gets another body than the expected one; `path` sends it back. */
export async function verifyTransformation(plan: LoadPlan, path: string, expected: unknown): Promise<void> {
  const head = Buffer.from(requestHead('POST', path, requestFields(plan)), 'latin1')
  const message = Buffer.concat([head, Buffer.from(plan.request?.body ?? '')])
  const { status, body } = await sendRequest(plan.port, message, false)
  if (status !== 200) throw new Error(`returned status ${status} instead of 200 for ${path}`)
  if (!isDeepStrictEqual(JSON.parse(body.toString()), expected)) throw new Error('sent another body to the backend')
}

/** Sends the request that uses up a limit of one; its own response does not matter. */
export async function exhaustLimit(plan: LoadPlan): Promise<void> {
  const head = requestHead('GET', plan.path, requestFields(plan))
  await sendRequest(plan.port, Buffer.from(head, 'latin1'), false)
}

/** Throws if a peer accepts a token with the signature of another token. */
export async function verifyTokenCheck(plan: LoadPlan): Promise<void> {
  const [first, second] = tokenIssuer().tokens(2)
  const forged = first!.slice(0, first!.lastIndexOf('.')) + second!.slice(second!.lastIndexOf('.'))
  const head = requestHead('GET', plan.path, { ...requestFields(plan), Authorization: `Bearer ${forged}` })
  const { status } = await sendRequest(plan.port, Buffer.from(head, 'latin1'), false)
  if (status !== 401) throw new Error(`returned status ${status} for a forged token`)
}

/** Throws with the reason if a WebSocket message is not echoed unchanged. */
export async function verifyWebSocket(port: number): Promise<void> {
  const message = randomBytes(200)
  const echo = unmaskedFrame(message)
  const received = await new Promise<Buffer>((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(upgradeRequest(ECHO_PATH)))
    const timer = setTimeout(settle, TIMEOUT_MS)
    function settle(): void {
      clearTimeout(timer)
      socket.destroy()
      resolve(bytes)
    }
    socket.on('data', fresh => {
      const wasComplete = bytes.includes(HEAD_END)
      bytes = Buffer.concat([bytes, fresh as Buffer])
      if (bytes.length - bytes.indexOf(HEAD_END) - HEAD_END.length >= echo.length && wasComplete) settle()
      else if (!wasComplete && bytes.includes(HEAD_END)) socket.write(maskedFrame(message))
    })
    socket.once('end', settle)
    socket.once('error', error => {
      clearTimeout(timer)
      reject(error)
    })
  })
  const end = received.indexOf(HEAD_END)
  const head = received.toString('latin1', 0, Math.max(0, end))
  if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(`returned status ${head.slice(9, 12)} instead of 101`)
  if (!head.includes(acceptValue())) throw new Error('did not pass on Sec-WebSocket-Accept')
  if (!received.subarray(end + HEAD_END.length).equals(echo)) throw new Error('did not echo a message unchanged')
}
