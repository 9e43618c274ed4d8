/** Gateways of tests whose backends are behind forward proxies. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { ForwardProxy } from '../../src/target/route.ts'
import type { TlsClientPlan } from '../../src/socket/tls.ts'
import { assertFault, takeAnswer } from './answers.ts'
import { CA } from './certificates.ts'
import { countedFailures, failureLine } from './failures.ts'
import { startGateway, type TestApi, type TestGateway } from './gateway.ts'
import { connectPeer, type Peer } from './peers.ts'

export const TLS: TlsClientPlan = {
  minVersion: 'TLSv1.2',
  maxVersion: 'TLSv1.3',
  ciphers: '',
  ca: [CA.cert],
  identity: null,
  hostname: 'strict',
}
export function proxyAt(port: number, authorization = ''): ForwardProxy {
  return { host: '127.0.0.1', port, authorization }
}

export function secured(port: number, proxy: ForwardProxy, context = '/t', host = 'localhost'): TestApi {
  return { context, host, port, route: { secured: true, tlsClient: 'default', proxy } }
}

export async function gatewayFor(
  t: TestContext,
  apis: readonly TestApi[],
  http: Readonly<Record<string, unknown>> = {},
  tls: TlsClientPlan = TLS,
): Promise<TestGateway> {
  const gateway = await startGateway(apis, http, null, [], { tlsClients: { default: tls } })
  t.after(() => gateway.stop())
  return gateway
}

export async function ask(t: TestContext, gateway: TestGateway, path: string): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  return client
}

/** What the client is told of a proxy that refuses; where the proxy is, is for the log. */
export function refusalOf(status: number): string {
  return `The forward proxy refused the request (${status})`
}

/** The connection to the backend cannot be had: 502 with 101503, and the cause in the one line of the log. */
export async function assertRefused(t: TestContext, gateway: TestGateway, cause: string): Promise<void> {
  const from = gateway.reports.length
  const counted = countedFailures(gateway, 101503, 0)
  const [, status] = /^proxy \S+ answered (\d+)/.exec(cause) ?? []
  const description = status === undefined ? undefined : refusalOf(Number(status))
  assertFault(await takeAnswer(await ask(t, gateway, '/t/it')), 502, 101503, 0, false, description)
  const { fields, level } = failureLine(gateway, from)
  assert.equal(fields.CAUSE_OF_ERROR, cause)
  assert.equal(fields.ERROR_CODE, 101503)
  assert.equal(level, 'warn')
  assert.equal(countedFailures(gateway, 101503, 0), counted + 1)
  assert.equal(gateway.metrics().counts.targetsOpen, 0)
}
