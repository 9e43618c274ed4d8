/** Gateways whose sequences call backends, and backends that respond by path. */
import assert from 'node:assert/strict'
import { type ApiDefinition, LONE_ENDPOINT_SETTINGS, NO_ENDPOINTS } from '../../src/apis/api-definition.ts'
import type { BackendTokenPlan } from '../../src/auth/auth-plan.ts'
import { Diagnostics, formatDiagnostic } from '../../src/config/diagnostics.ts'
import type { ApiMediationPlan } from '../../src/mediation/flow-plan.ts'
import type { EndpointFiles } from '../../src/mediation/endpoint-files.ts'
import { withEndpointForms } from '../../src/mediation/endpoint-forms.ts'
import type { EndpointForm } from '../../src/mediation/endpoint-plan.ts'
import { needsOf } from '../../src/mediation/needs.ts'
import { parseEndpointFile } from '../../src/mediation/sequence-parser.ts'
import type { SequencePlan } from '../../src/mediation/sequence-plan.ts'
import { ApiPlanner } from '../../src/plan/api-planning.ts'
import type { ApiPlan, ProxyProfiles, SequenceEndpointsPlan } from '../../src/plan/reactor-plan.ts'
import { NO_SEQUENCES } from '../../src/mediation/sequence-files.ts'
import { PLAIN_DEFINITION } from './api-plan.ts'
import { OPEN_CORS } from './filter-chain.ts'
import { type FlowTexts, flowsOf } from './flows.ts'
import { type GatewayOptions, startGateway, type TestGateway } from './gateway.ts'
import { connectPeer, type Peer, refusingPort, ScriptedBackend } from './peers.ts'
import { takeResponse } from './responses.ts'
import type { Owner } from './suite.ts'

/** Slots of the harness that its APIs do not use. */
const FIRST_SLOT = 62

/** A request that a backend got. */
export interface Received {
  readonly method: string
  readonly target: string
  readonly head: string
  readonly body: string
}

/** A response: status, body, and further lines. Null: the reaction has done something else with the connection. */
type Answer = readonly [status: number, body: string, lines?: string] | null
export type Reaction = (request: Received, peer: Peer) => Answer

export interface PathBackend {
  readonly port: number
  readonly received: Received[]
}

/** Responds in the same way to every request. */
export function says(status: number, body: string, lines = ''): Reaction {
  return () => [status, body, lines]
}

/** A backend that reacts by path, without query; to other paths with 404. */
export async function startBackend(t: Owner, reactions: Readonly<Record<string, Reaction>>): Promise<PathBackend> {
  const received: Received[] = []
  const backend = await ScriptedBackend.listen(peer => void serve(peer, reactions, received))
  t.after(() => backend.close())
  return { port: backend.port, received }
}

async function serve(peer: Peer, reactions: Readonly<Record<string, Reaction>>, received: Received[]): Promise<void> {
  while (!peer.isClosed) {
    await peer.untilRequest()
    if (!peer.text.includes('\r\n\r\n')) return
    const head = peer.take(peer.text.indexOf('\r\n\r\n') + 4)
    const length = Number(/^content-length: (\d+)/im.exec(head)?.[1] ?? 0)
    await peer.untilLength(length)
    const [method = '', target = ''] = head.split(' ')
    const request = { method, target, head, body: peer.take(length) }
    received.push(request)
    const answer = (reactions[target.split('?')[0]!] ?? says(404, ''))(request, peer)
    if (answer === null) return
    const [status, text, lines = ''] = answer
    const type = lines.includes('Content-Type') || text === '' ? '' : 'Content-Type: application/json\r\n'
    peer.send(`HTTP/1.1 ${status} Scripted\r\n${type}${lines}Content-Length: ${text.length}\r\n\r\n${text}`)
  }
}

/** Endpoints of files by name: an address, or a form; or the files of a home. */
type NamedEndpoints = Readonly<Record<string, string | EndpointForm>> | EndpointFiles

/** The endpoints that sequences contain, planned as the primary does. */
export function planEndpoints(
  sequences: readonly SequencePlan[],
  named: NamedEndpoints = {},
  profiles: ProxyProfiles = { plain: [], secured: [] },
): SequenceEndpointsPlan {
  const { plans } = planSequences(sequences, named, profiles)
  const text = JSON.stringify(plans, (key, value: unknown) =>
    (key === 'slot' || key === 'routeSlot') && typeof value === 'number' ? value + FIRST_SLOT : value,
  )
  return JSON.parse(text) as SequenceEndpointsPlan
}

/** The access tokens that endpoints of sequences need. */
export function planTokens(
  sequences: readonly SequencePlan[],
  named: NamedEndpoints = {},
): readonly BackendTokenPlan[] {
  return planSequences(sequences, named, { plain: [], secured: [] }).tokens
}

function planSequences(sequences: readonly SequencePlan[], named: NamedEndpoints, profiles: ProxyProfiles) {
  const endpoints = filesOf(named)
  const direct = { proxyFor: () => null, profiles, errors: [], warnings: [] }
  const mediation = { sequences, extensions: NO_NAMES, policies: NO_NAMES, byOperation: {} }
  const names = { name: 'a', context: '/a', version: '1', isDefaultVersion: false }
  const definition: ApiDefinition = { ...PLAIN_DEFINITION, ...names, endpoints: NO_ENDPOINTS, mediation }
  const { ofSequences } = new ApiPlanner(1, 0, 32).plan({
    ...{ definitions: [definition], proxies: direct, cors: OPEN_CORS, allowedScopes: [] },
    ...{ sequences: { ...NO_SEQUENCES, endpoints }, needsOf },
  })
  return ofSequences
}

function filesOf(named: NamedEndpoints): EndpointFiles {
  if (named instanceof Map) return named
  return new Map(
    Object.entries(named).map(([name, given]) => {
      const form = typeof given === 'string' ? formOf(given) : given
      return [name, { label: name, text: '', form, parsed: form }] as const
    }),
  )
}

function formOf(url: string): EndpointForm {
  const single = { kind: 'single', algorithm: 'round_robin', failsOver: false } as const
  const urls = { ...single, endpoints: [{ url, settings: LONE_ENDPOINT_SETTINGS }] }
  return { method: '', format: 'kept', appendsPath: true, address: { kind: 'urls', endpoints: urls } }
}

const NO_NAMES = { request: [], response: [], fault: [] }

interface CallsGateway {
  readonly gateway: TestGateway
  /** Status and body of the response to a request. */
  ask(request?: string, body?: string, lines?: string): Promise<readonly [status: number, body: string]>
}

/** A gateway with the API `/a`, on real worker threads; `port`: of its backend. */
export async function startCalls(
  t: Owner,
  texts: FlowTexts,
  port: number,
  named: NamedEndpoints = {},
  options: GatewayOptions = {},
  profiles?: ProxyProfiles,
): Promise<CallsGateway> {
  return startCallsOf(t, await flowsOf(texts), port, named, options, profiles)
}

/** As `startCalls`, of planned flows. `overrides`: of the API. */
export async function startCallsOf(
  t: Owner,
  mediation: ApiMediationPlan,
  port: number,
  named: NamedEndpoints = {},
  options: GatewayOptions = {},
  profiles?: ProxyProfiles,
  overrides: Partial<ApiPlan> = {},
): Promise<CallsGateway> {
  const sequenceEndpoints = planEndpoints(mediation.sequences, named, profiles)
  const files = filesOf(named)
  const sequences = mediation.sequences.map(sequence => withEndpointForms(sequence, files))
  const own = { ...overrides, mediation: { ...mediation, sequences } }
  const gateway = await startGateway([{ context: '/a', port, overrides: own }], {
    sequenceEndpoints,
    ...options,
  })
  t.after(() => gateway.stop())
  return {
    gateway,
    ask: async (request = 'GET /a/x', body = '', lines = '') => {
      const client = await connectPeer(gateway.port)
      t.after(() => client.destroy())
      const type = body === '' ? '' : `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
      client.send(`${request} HTTP/1.1\r\nHost: gateway\r\n${lines}${type}\r\n${body}`)
      const { status, body: answer } = await takeResponse(client)
      return [status, answer]
    },
  }
}

/** The endpoint of a file that holds an element. */
export async function endpointOfFile(element: string): Promise<EndpointForm> {
  const diagnostics = new Diagnostics()
  const text = `<endpoint xmlns="http://ws.apache.org/ns/synapse" name="one">${element}</endpoint>`
  const form = await parseEndpointFile('one', 'one.xml', text, diagnostics)
  assert.deepEqual(diagnostics.errors.map(formatDiagnostic), [])
  return form!
}

/** A port that refuses connections until the end of the test. */
export async function refusing(t: Owner): Promise<number> {
  const { port, close } = await refusingPort()
  t.after(close)
  return port
}

export const address = (port: number, path = '') =>
  `<endpoint><address uri="http://127.0.0.1:${port}${path}"/></endpoint>`
/** A call that leaves the path of the request out. */
export const callTo = (port: number, path: string) =>
  `<property name="REST_URL_POSTFIX" scope="axis2" action="remove"/><call>${address(port, path)}</call>`
