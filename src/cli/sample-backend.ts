/**
 * A backend to try the gateway with: echoes, delays, sizes, streams and errors. Uses `node:http`, so it shares no code
 * with the gateway; runs in its own thread, so it takes no time from the primary.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

export interface ListenAddress {
  readonly host: string
  /** 0 for a free port. */
  readonly port: number
  /** The sample backend of a process that this one replaces has the port too. */
  readonly isShared?: boolean
}

export interface SampleBackend {
  readonly port: number
  close(): Promise<void>
}

const GIB = 1024 ** 3
const CHUNK = Buffer.alloc(64 * 1024, 'sluice')
const DRIP_BYTES = 20
const DRIP_MS = 250
const TRUNCATED_BYTES = 2000

/** Longer than the gateway keeps idle connections: this backend never closes one that the gateway may use. */
const KEEP_ALIVE_MS = 75_000

/** `numbers`: those of the path, within their bounds. `closed`: aborted when the connection closes. */
type Handler = (
  request: IncomingMessage,
  response: ServerResponse,
  numbers: readonly number[],
  closed: AbortSignal,
) => unknown

interface Resource {
  /** `<name>` stands for a number, `[/...]` for any further segments. */
  readonly path: string
  readonly about: string
  /** Smallest and largest value of each number. */
  readonly bounds: readonly (readonly [number, number])[]
  readonly handle: Handler
}

const RESOURCES: readonly Resource[] = [
  {
    path: '/',
    about: 'this list',
    bounds: [],
    handle: (_, response) => sendJson(response, 200, { paths: listPaths() }),
  },
  {
    path: '/echo[/...]',
    about: 'the request body; without a body, method, URL and headers as JSON',
    bounds: [],
    handle: echo,
  },
  { path: '/delay/<ms>', about: 'a response after 0 to 60000 ms', bounds: [[0, 60_000]], handle: delay },
  { path: '/bytes/<n>', about: 'n bytes with Content-Length, up to 4 GiB', bounds: [[0, 4 * GIB]], handle: sendBytes },
  {
    path: '/stream/<chunks>/<ms>',
    about: 'that many chunks, that many milliseconds apart',
    bounds: [
      [1, 100_000],
      [0, 60_000],
    ],
    handle: stream,
  },
  { path: '/status/<code>', about: 'a response of that status, 200 to 599', bounds: [[200, 599]], handle: sendStatus },
  { path: '/trailers', about: 'a chunked body with trailer fields', bounds: [], handle: sendTrailers },
  { path: '/early-hints', about: '103 Early Hints, then 200', bounds: [], handle: sendEarlyHints },
  { path: '/drip', about: `${DRIP_BYTES} bytes, one every ${DRIP_MS} ms`, bounds: [], handle: drip },
  { path: '/close', about: 'closes the connection after half of the body', bounds: [], handle: sendTruncated },
]

const ROUTES = RESOURCES.map(resource => ({
  ...resource,
  pattern: new RegExp(`^${resource.path.replace('[/...]', '(?:/.*)?').replaceAll(/<\w+>/g, '(\\d{1,12})')}$`),
}))

function listPaths(): Record<string, string> {
  return Object.fromEntries(RESOURCES.map(({ path, about }) => [path, about]))
}

/** Rejects with a message for the operator if the backend cannot listen. */
export function startSampleBackend({ host, port, isShared = false }: ListenAddress): Promise<SampleBackend> {
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0, maxHeaderSize: 65_536 },
    (request, response) => {
      respond(request, response).catch((error: unknown) => fail(response, error))
    },
  )
  return new Promise((resolve, reject) => {
    server.once('error', (failure: NodeJS.ErrnoException) => reject(new Error(listenError(failure, host, port))))
    const listen = (): void => {
      // A process that replaces this one listens beside it for a while.
      server.listen({ port, host, reusePort: process.platform === 'linux' }, () => {
        resolve({ port: (server.address() as AddressInfo).port, close })
      })
    }
    // With `reusePort` alone, a port of another program would seem to be free.
    if (isShared) listen()
    else server.listen({ port, host }, () => server.close(listen))
  })
  function close(): Promise<void> {
    return new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }
}

function listenError({ code, message }: NodeJS.ErrnoException, host: string, port: number): string {
  return `the sample backend cannot listen on ${host}:${port}: ${code === 'EADDRINUSE' ? 'the port is taken' : message}`
}

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url!.split('?', 1)[0]!
  for (const { pattern, bounds, handle, path: template } of ROUTES) {
    const match = pattern.exec(path)
    if (match === null) continue
    const numbers = match.slice(1).map(Number)
    const exceeded = bounds.find(([least, most], at) => numbers[at]! < least || numbers[at]! > most)
    if (exceeded !== undefined) {
      sendJson(response, 400, { error: `${path}: the numbers of ${template} go from ${exceeded[0]} to ${exceeded[1]}` })
      return
    }
    const closed = new AbortController()
    response.once('close', () => closed.abort())
    await handle(request, response, numbers, closed.signal)
    return
  }
  sendJson(response, 404, { error: `the sample backend has no ${path}`, paths: listPaths() })
}

/** Ends a response whose client has disconnected, or whose handler has thrown. */
function fail(response: ServerResponse, error: unknown): void {
  if (response.headersSent || response.destroyed) response.destroy()
  else sendJson(response, 500, { error: String(error) })
}

function sendJson(response: ServerResponse, status: number, value: unknown): void {
  const body = `${JSON.stringify(value)}\n`
  response
    .writeHead(status, { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) })
    .end(body)
}

function echo(request: IncomingMessage, response: ServerResponse): unknown {
  const { 'content-length': length, 'content-type': type, 'transfer-encoding': coding } = request.headers
  if (coding === undefined && Number(length ?? 0) === 0) {
    return sendJson(response, 200, { method: request.method, url: request.url, headers: request.headers })
  }
  response.setHeader('content-type', type ?? 'application/octet-stream')
  if (coding === undefined && length !== undefined) response.setHeader('content-length', length)
  return pipeline(request, response)
}

async function delay(...[, response, [ms], signal]: Parameters<Handler>): Promise<void> {
  await wait(ms, undefined, { signal })
  sendJson(response, 200, { delayedMs: ms })
}

function sendBytes(...[request, response, [bytes]]: Parameters<Handler>): unknown {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes! })
  return request.method === 'HEAD' ? response.end() : pipeline(Readable.from(chunksOf(bytes!)), response)
}

function* chunksOf(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= CHUNK.length) yield left < CHUNK.length ? CHUNK.subarray(0, left) : CHUNK
}

function stream(...[request, response, [chunks, ms], signal]: Parameters<Handler>): unknown {
  response.writeHead(200, { 'content-type': 'text/plain' })
  if (request.method === 'HEAD') return response.end()
  return pipeline(Readable.from(paced(chunks!, ms!, signal, at => `chunk ${at} of ${chunks}\n`)), response)
}

function drip(...[request, response, , signal]: Parameters<Handler>): unknown {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': DRIP_BYTES })
  if (request.method === 'HEAD') return response.end()
  return pipeline(Readable.from(paced(DRIP_BYTES, DRIP_MS, signal, () => '.')), response)
}

async function* paced(
  count: number,
  ms: number,
  signal: AbortSignal,
  text: (at: number) => string,
): AsyncGenerator<string> {
  for (let at = 1; at <= count; at++) {
    if (at > 1) await wait(ms, undefined, { signal })
    yield text(at)
  }
}

function sendStatus(...[, response, [status]]: Parameters<Handler>): void {
  // No content: RFC 9110 15.3.5, 15.3.6, 15.4.5.
  if (status === 204 || status === 205 || status === 304) response.writeHead(status).end()
  else sendJson(response, status!, { status })
}

function sendTrailers(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain', trailer: 'x-lines, x-checksum' })
  response.write('one\n')
  response.write('two\n')
  response.addTrailers({ 'x-lines': '2', 'x-checksum': 'ab12' })
  response.end()
}

function sendEarlyHints(_: IncomingMessage, response: ServerResponse): void {
  response.writeEarlyHints({ link: '</style.css>; rel=preload; as=style' }, () => {
    sendJson(response, 200, { hinted: true })
  })
}

function sendTruncated(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': TRUNCATED_BYTES })
  response.write(CHUNK.subarray(0, TRUNCATED_BYTES / 2), () => response.destroy())
}

/** The only message of the thread: its port, or why it cannot listen. */
type StartMessage = { readonly port: number } | { readonly error: string }

/** Starts the backend in its own thread. */
export function startSampleThread(address: ListenAddress): Promise<SampleBackend> {
  const worker = new Worker(new URL(import.meta.url), { workerData: address })
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (message: StartMessage) => {
      if ('error' in message) reject(new Error(message.error))
      else resolve({ port: message.port, close: () => worker.terminate().then(() => {}) })
    })
  })
}

/** This file is the entry of the thread, and may be imported by another thread. */
if (!isMainThread && process.argv[1] === import.meta.filename) {
  startSampleBackend(workerData as ListenAddress).then(
    ({ port }) => parentPort!.postMessage({ port } satisfies StartMessage),
    (error: Error) => parentPort!.postMessage({ error: error.message } satisfies StartMessage),
  )
}
