/** A gateway whose projects ask for validation (`enableSchemaValidation`), in front of one backend. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import { loadProjects, mediationsOf } from './contracts.ts'
import { startGateway } from './gateway.ts'
import { connectPeer } from './peers.ts'
import { takeResponse } from './responses.ts'
import { type Reaction, startBackend } from './sequence-calls.ts'
import { sharedBySuite } from './suite.ts'

const ASKS = '  enableSchemaValidation: true\n'

/** The answer of the backend: status, body, further lines; or its behaviour. */
type Answer = readonly [status: number, body: string, lines?: string] | Reaction

interface ValidatedGateway {
  /** Sends a request, and resolves with its response. `body`: with its length, unless `lines` frame it. */
  readonly ask: (
    request: string,
    lines: string,
    body: string | Buffer,
  ) => Promise<Pick<Awaited<ReturnType<typeof takeResponse>>, 'status' | 'body'>>
  readonly backend: Awaited<ReturnType<typeof startBackend>>
}

/**
 * `documents`: by context, with further lines within `data` where the project has some; each API has the version 1. All
 * tests of a file share the gateway.
 */
export function validatedGateway(
  documents: Readonly<Record<string, string | readonly [more: string, document: string]>>,
) {
  let answer: Answer = [200, '']
  const reaction: Reaction = (...received) => (typeof answer === 'function' ? answer(...received) : answer)
  const shared = sharedBySuite(async owner => {
    const apis = await loadProjects(
      owner,
      Object.fromEntries(
        Object.entries(documents).map(([context, given]) => {
          const [more, document] = typeof given === 'string' ? ['', given] : given
          return [context, [ASKS + more, { 'Definitions/swagger.yaml': document }]]
        }),
      ),
    )
    assert.deepEqual(apis.said, [])
    const any = new Proxy({}, { get: () => reaction }) as Readonly<Record<string, Reaction>>
    const backend = await startBackend(owner, any)
    const plans = [...mediationsOf(apis)].map(([context, overrides]) => {
      return { context: `${context}/1`, port: backend.port, overrides }
    })
    const gateway = await startGateway(plans)
    owner.after(() => gateway.stop())
    return { backend, gateway }
  })
  return async (t: TestContext, given: Answer = [200, '']): Promise<ValidatedGateway> => {
    const { backend, gateway } = await shared
    answer = given
    backend.received.length = 0
    const client = await connectPeer(gateway.port)
    t.after(() => client.destroy())
    const ask: ValidatedGateway['ask'] = async (request, lines, body) => {
      const isFramed = body.length === 0 || /transfer-encoding/i.test(lines)
      const length = isFramed ? '' : `Content-Length: ${Buffer.byteLength(body)}\r\n`
      client.send(`${request} HTTP/1.1\r\nHost: h\r\n${lines}${length}\r\n`)
      client.send(body)
      if (!request.startsWith('HEAD ')) return takeResponse(client)
      await client.untilText('\r\n\r\n')
      return { status: Number(client.take().split(' ')[1]), body: '' }
    }
    return { ask, backend }
  }
}

/** The violations of a fault body. */
export function violationsIn(body: string): readonly string[] {
  const { description } = (JSON.parse(body) as { fault: { description: string } }).fault
  return description.slice(description.indexOf(': ') + 2).split('; ')
}
