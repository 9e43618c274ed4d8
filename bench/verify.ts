/**
 * Asks a proxy once for what it is about to be measured with. A peer that answers with an error page, loses body bytes,
 * or ignores `Connection: close` would otherwise be very fast.
 */
import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { connectSecurely } from './certificate.ts'
import type { Ask } from './contest/ask.ts'
import { fieldsOf, type LoadPlan } from './load/load-plan.ts'
import { requestHead } from './request-head.ts'
import { tokenIssuer } from './token-issuer.ts'
import { acceptOf, ECHO_PATH, maskedFrame, plainFrame, upgradeRequest } from './websocket.ts'

const PATIENCE_MS = 2000
const HEAD_END = '\r\n\r\n'

interface Answer {
  readonly status: number
  readonly head: string
  readonly body: Buffer
  readonly closed: boolean
}

/** One request over a connection of its own; waits for the close of the other side only when `untilClose` says so. */
export function ask(port: number, request: Buffer, untilClose: boolean, chainFile?: string): Promise<Answer> {
  return new Promise((resolve, reject) => {
    let received = Buffer.alloc(0)
    const send = (): void => void socket.write(request)
    const socket =
      chainFile === undefined ? connect({ port, host: '127.0.0.1' }, send) : connectSecurely({ port }, chainFile, send)
    const timer = setTimeout(() => settle(false), PATIENCE_MS)
    function settle(closed: boolean): void {
      clearTimeout(timer)
      socket.destroy()
      const end = received.indexOf('\r\n\r\n')
      const head = received.toString('latin1', 0, Math.max(0, end))
      if (end < 0) reject(new Error('no complete response head'))
      else resolve({ status: Number(head.slice(9, 12)), head, body: received.subarray(end + 4), closed })
    }
    socket.on('data', bytes => {
      received = Buffer.concat([received, bytes as Buffer])
      if (!untilClose && complete(received)) settle(false)
    })
    socket.once('end', () => settle(true))
    socket.once('error', error => {
      clearTimeout(timer)
      reject(error)
    })
  })
}

function complete(received: Buffer): boolean {
  const end = received.indexOf('\r\n\r\n')
  if (end < 0) return false
  const length = /\r\ncontent-length: *(\d+)/i.exec(received.toString('latin1', 0, end))
  return length !== null && received.length - end - 4 >= Number(length[1])
}

/** Throws with the reason when a peer does not do what the scenario is about. */
export async function verify(plan: LoadPlan): Promise<void> {
  if (plan.ask !== undefined) return verifyAsk(plan, plan.ask)
  const head = requestHead(plan.uploadBytes > 0 ? 'POST' : 'GET', plan.path, fieldsOf(plan))
  const request = Buffer.concat([Buffer.from(head, 'latin1'), Buffer.alloc(plan.uploadBytes, 'x')])
  const answer = await ask(plan.port, request, plan.connectionPerRequest, plan.certificate?.chainFile)
  if (answer.status !== 200) throw new Error(`answered ${answer.status} instead of 200`)
  if (plan.uploadBytes > 0) {
    const arrived = Number(answer.body.toString('latin1'))
    if (!(arrived >= plan.uploadBytes)) throw new Error(`passed ${arrived} of ${plan.uploadBytes} body bytes`)
  } else if (answer.body.length !== plan.downloadBytes) {
    throw new Error(`returned ${answer.body.length} of ${plan.downloadBytes} body bytes`)
  }
  if (!plan.connectionPerRequest) return
  if (!answer.closed) throw new Error('kept the connection open after Connection: close')
  if (!/\r\nconnection: *close/i.test(answer.head)) throw new Error('closed without saying Connection: close')
}

/** Every path that differs in more than an id would take long: the first few. */
const ASKED_MAX = 20

async function verifyAsk(plan: LoadPlan, { method, paths, statuses, uploadBytes, downloadBytes }: Ask): Promise<void> {
  for (const path of paths.slice(0, ASKED_MAX)) {
    const head = requestHead(method, path, fieldsOf(plan))
    const { status, body } = await ask(plan.port, Buffer.from(`${head}${'x'.repeat(uploadBytes)}`, 'latin1'), false)
    if (!statuses.includes(status)) throw new Error(`answered ${status} instead of ${statuses.join(' or ')} to ${path}`)
    if (downloadBytes !== null && body.length !== downloadBytes)
      throw new Error(`returned ${body.length} of ${downloadBytes} body bytes for ${path}`)
  }
}

/** Throws when a token is let in whose signature is that of another one. */
export async function verifyRefusal(plan: LoadPlan): Promise<void> {
  const [first, second] = tokenIssuer().tokens(2)
  const forged = first!.slice(0, first!.lastIndexOf('.')) + second!.slice(second!.lastIndexOf('.'))
  const head = requestHead('GET', plan.path, { ...fieldsOf(plan), Authorization: `Bearer ${forged}` })
  const { status } = await ask(plan.port, Buffer.from(head, 'latin1'), false)
  if (status !== 401) throw new Error(`answered ${status} to a forged token`)
}

/** Throws with the reason when a message does not come back through a WebSocket connection as it was sent. */
export async function verifyTunnel(port: number): Promise<void> {
  const message = randomBytes(200)
  const echo = plainFrame(message)
  const received = await new Promise<Buffer>((resolve, reject) => {
    let bytes = Buffer.alloc(0)
    const socket = connect({ port, host: '127.0.0.1' }, () => socket.write(upgradeRequest(ECHO_PATH)))
    const timer = setTimeout(settle, PATIENCE_MS)
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
  if (!head.startsWith('HTTP/1.1 101 ')) throw new Error(`answered ${head.slice(9, 12)} instead of 101`)
  if (!head.includes(acceptOf())) throw new Error('did not pass Sec-WebSocket-Accept on')
  if (!received.subarray(end + HEAD_END.length).equals(echo)) throw new Error('did not return a message as it was sent')
}
