/** An implementation of a mounted API whose operations do what tests ask for, by the first segment of the path. */
import { createHash } from 'node:crypto'
import type { MountedRequest, MountedResponse, OpenMountedApi } from '../../src/mounted/interface.ts'

/** Requests that were aborted, by their marker in the query. */
const aborted: string[] = []
/** Bytes of bodies of responses that were asked for, by marker. */
const produced = new Map<string, number>()

export const open: OpenMountedApi = ({ settings, api }) => {
  if (settings.fails === 'open') throw new RangeError('text of a client')
  const handlers: Readonly<Record<string, (request: MountedRequest) => MountedResponse | Promise<MountedResponse>>> = {
    show: request => show(request, api.version, settings),
    hash: async request => {
      const hash = createHash('sha256')
      let length = 0
      for await (const piece of request.body) {
        hash.update(piece)
        length += piece.length
      }
      return json({ length, declared: request.body.length, sha256: hash.digest('hex') })
    },
    text: async request => ({ status: 200, body: await request.body.text(1000) }),
    echo: request => ({ status: 200, body: request.body, ...lengthOf(request) }),
    bytes: ({ query }) => ({ status: 200, body: new Uint8Array(Number(query)).fill(0x78) }),
    pieces: ({ query }) => ({ status: 200, body: pieces(Number(query), '') }),
    marked: ({ query }) => ({ status: 200, body: pieces(Number.MAX_SAFE_INTEGER, query) }),
    early: () => ({ status: 409, fields: [['X-Early', 'yes']], body: 'no' }),
    status: ({ query }) => ({ status: Number(query), body: 'body' }),
    fields: () => ({
      status: 200,
      fields: [
        ['Content-Length', '9'],
        ['Transfer-Encoding', 'x'],
        ['X-A', '1'],
        ['x-a', '2'],
      ],
    }),
    split: () => ({ status: 200, fields: [['X-A', 'a\r\nX-B: b']] }),
    throws: () => {
      throw new TypeError('text of a client')
    },
    nothing: () => undefined as never,
    breaks: () => ({ status: 200, body: breaking() }),
    short: () => ({ status: 200, length: 100, body: pieces(10, '') }),
    long: () => ({ status: 200, length: 10, body: pieces(100, '') }),
    waits: ({ signal, query }) => {
      signal.addEventListener('abort', () => aborted.push(query))
      return new Promise<never>(() => undefined)
    },
    gentle: async ({ signal, query }) => {
      await new Promise<void>(resolve => signal.addEventListener('abort', () => resolve()))
      aborted.push(query)
      return { status: 200 }
    },
    aborted: () => json(aborted),
    produced: ({ query }) => json(produced.get(query) ?? 0),
    dies: () => process.exit(7),
  }
  return {
    handle: request => {
      const name = request.path.split('/')[1] ?? ''
      return (handlers[name] ?? (() => ({ status: 404 })))(request)
    },
  }
}

function show(request: MountedRequest, version: string, settings: object): MountedResponse {
  const { method, path, query, operation, variables, url, fields, caller, body } = request
  const shown = { method, path, query, operation, variables, url, fields, caller, length: body.length }
  return json({ ...shown, host: request.field('HOST'), version, settings })
}

function lengthOf({ body: { length } }: MountedRequest): { readonly length?: number } {
  return length < 0 ? {} : { length }
}

async function* pieces(length: number, marker: string): AsyncGenerator<Uint8Array, void, undefined> {
  const piece = Buffer.alloc(10_000, 'x')
  try {
    for (let at = 0; at < length; at += piece.length) {
      const bytes = piece.subarray(0, Math.min(piece.length, length - at))
      if (marker !== '') produced.set(marker, at + bytes.length)
      yield bytes
    }
  } finally {
    if (marker !== '') aborted.push(marker)
  }
}

async function* breaking(): AsyncGenerator<string, void, undefined> {
  yield 'begun'
  await new Promise(resolve => setImmediate(resolve))
  throw new TypeError('text of a client')
}

function json(value: unknown): MountedResponse {
  return { status: 200, fields: [['Content-Type', 'application/json']], body: JSON.stringify(value) }
}
