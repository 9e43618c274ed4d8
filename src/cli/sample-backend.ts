/**
 * A backend to try the gateway on: echoes, delays, sizes, streams and faults on one port. On `node:http`, so that it
 * shares no code with what it is there to try; in a thread of its own, so that it takes no time from the reactors.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setTimeout as wait } from 'node:timers/promises'
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads'

export interface SampleBackend {
  readonly port: number
  close(): Promise<void>
}

const GIB = 1024 ** 3
const PIECE = Buffer.alloc(64 * 1024, 'sluice')
const DRIPS = 20
const DRIP_MS = 250
const CUT_SHORT_BYTES = 2000

/** Longer than the gateway keeps idle backend connections, so that it is never surprised by this end. */
const KEEP_ALIVE_MS = 75_000

/** `numbers` are those of the path, within their bounds; `gone` is aborted when the other side leaves. */
type Answer = (
  request: IncomingMessage,
  response: ServerResponse,
  numbers: readonly number[],
  gone: AbortSignal,
) => unknown

interface Place {
  /** Each `<name>` stands for a number. */
  readonly path: string
  readonly about: string
  /** Least and most, for each number of the path. */
  readonly bounds: readonly (readonly [number, number])[]
  readonly answer: Answer
}

const PLACES: readonly Place[] = [
  { path: '/', about: 'this list', bounds: [], answer: (_, response) => sendJson(response, 200, { places: listed() }) },
  {
    path: '/echo',
    about: 'the request body; without one the method, URL and headers as JSON',
    bounds: [],
    answer: echo,
  },
  { path: '/delay/<ms>', about: 'answers after 0 to 60000 ms', bounds: [[0, 60_000]], answer: delay },
  { path: '/bytes/<n>', about: 'n bytes with Content-Length, up to 4 GiB', bounds: [[0, 4 * GIB]], answer: sendBytes },
  {
    path: '/stream/<chunks>/<ms>',
    about: 'so many chunks, so many milliseconds apart',
    bounds: [
      [1, 100_000],
      [0, 60_000],
    ],
    answer: stream,
  },
  { path: '/status/<code>', about: 'a response of that status, 200 to 599', bounds: [[200, 599]], answer: sendStatus },
  { path: '/trailers', about: 'a chunked body with trailer fields', bounds: [], answer: sendTrailers },
  { path: '/early-hints', about: '103 Early Hints, then 200', bounds: [], answer: sendEarlyHints },
  { path: '/drip', about: `${DRIPS} bytes, one every ${DRIP_MS} ms`, bounds: [], answer: drip },
  { path: '/close', about: 'closes the connection after half of the body', bounds: [], answer: cutShort },
]

const ROUTES = PLACES.map(place => ({
  ...place,
  pattern: new RegExp(`^${place.path.replaceAll(/<\w+>/g, '(\\d{1,12})')}$`),
}))

function listed(): Record<string, string> {
  return Object.fromEntries(PLACES.map(({ path, about }) => [path, about]))
}

/** Rejects with a message for the operator when the port cannot be had. Port 0 takes a free one. */
export function startSampleBackend(port: number, host = '127.0.0.1'): Promise<SampleBackend> {
  const server = createServer(
    { keepAliveTimeout: KEEP_ALIVE_MS, requestTimeout: 0, maxHeaderSize: 65_536 },
    (...pair) => {
      respond(...pair).catch((failure: unknown) => fail(pair[1], failure))
    },
  )
  return new Promise((resolve, reject) => {
    server.once('error', (failure: NodeJS.ErrnoException) => reject(new Error(reasonOf(failure, host, port))))
    server.listen(port, host, () => {
      resolve({ port: (server.address() as AddressInfo).port, close: () => closing() })
    })
  })
  function closing(): Promise<void> {
    return new Promise(resolve => {
      server.close(() => resolve())
      server.closeAllConnections()
    })
  }
}

function reasonOf(failure: NodeJS.ErrnoException, host: string, port: number): string {
  if (failure.code === 'EADDRINUSE') return `the sample backend cannot listen on ${host}:${port}: the port is taken`
  return `the sample backend cannot listen on ${host}:${port}: ${failure.message}`
}

async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const path = request.url!.split('?', 1)[0]!
  for (const { pattern, bounds, answer, path: shown } of ROUTES) {
    const match = pattern.exec(path)
    if (match === null) continue
    const numbers = match.slice(1).map(Number)
    const wrong = bounds.find(([least, most], at) => numbers[at]! < least || numbers[at]! > most)
    if (wrong !== undefined) {
      sendJson(response, 400, { error: `${path}: the numbers of ${shown} go from ${wrong[0]} to ${wrong[1]}` })
      return
    }
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    await answer(request, response, numbers, gone.signal)
    return
  }
  sendJson(response, 404, { error: `the sample backend has no ${path}`, places: listed() })
}

/** The other side left, or we have a bug; either way this response is over. */
function fail(response: ServerResponse, failure: unknown): void {
  if (response.headersSent || response.destroyed) response.destroy()
  else sendJson(response, 500, { error: String(failure) })
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

async function delay(...[, response, [ms], signal]: Parameters<Answer>): Promise<void> {
  await wait(ms, undefined, { signal })
  sendJson(response, 200, { delayedMs: ms })
}

function sendBytes(...[request, response, [bytes]]: Parameters<Answer>): unknown {
  response.writeHead(200, { 'content-type': 'application/octet-stream', 'content-length': bytes! })
  return request.method === 'HEAD' ? response.end() : pipeline(Readable.from(pieces(bytes!)), response)
}

function* pieces(bytes: number): Generator<Buffer> {
  for (let left = bytes; left > 0; left -= PIECE.length) yield left < PIECE.length ? PIECE.subarray(0, left) : PIECE
}

function stream(...[request, response, [chunks, ms], signal]: Parameters<Answer>): unknown {
  response.writeHead(200, { 'content-type': 'text/plain' })
  if (request.method === 'HEAD') return response.end()
  return pipeline(Readable.from(paced(chunks!, ms!, signal, at => `chunk ${at} of ${chunks}\n`)), response)
}

function drip(...[request, response, , signal]: Parameters<Answer>): unknown {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': DRIPS })
  if (request.method === 'HEAD') return response.end()
  return pipeline(Readable.from(paced(DRIPS, DRIP_MS, signal, () => '.')), response)
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

function sendStatus(...[, response, [status]]: Parameters<Answer>): void {
  // RFC 9110 15.3.5, 15.3.6, 15.4.5: these have no content.
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

function cutShort(_: IncomingMessage, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'text/plain', 'content-length': CUT_SHORT_BYTES })
  response.write(PIECE.subarray(0, CUT_SHORT_BYTES / 2), () => response.destroy())
}

/** What the thread says once: the port, or why there is none. */
type Announcement = { readonly port: number } | { readonly failure: string }

/** The same in a thread of its own, as the gateway runs it. */
export function startSampleThread(port: number): Promise<SampleBackend> {
  const worker = new Worker(new URL(import.meta.url), { workerData: { port } })
  return new Promise((resolve, reject) => {
    worker.once('error', reject)
    worker.once('message', (said: Announcement) => {
      if ('failure' in said) reject(new Error(said.failure))
      else resolve({ port: said.port, close: () => worker.terminate().then(() => {}) })
    })
  })
}

/** This file may be the thread's entry, or imported by some other thread. */
if (!isMainThread && process.argv[1] === import.meta.filename) {
  startSampleBackend((workerData as { port: number }).port).then(
    ({ port }) => parentPort!.postMessage({ port } satisfies Announcement),
    (failure: Error) => parentPort!.postMessage({ failure: failure.message } satisfies Announcement),
  )
}
