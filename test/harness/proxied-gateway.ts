/** Gateways whose backends are behind a forward proxy. */
import assert from 'node:assert/strict'
import type { TestContext } from 'node:test'
import type { ForwardProxy } from '../../src/proxy/target/route.ts'
import type { TlsClientPlan } from '../../src/socket/tls.ts'
import { assertFault, takeResponse } from './responses.ts'
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

export function securedApi(port: number, proxy: ForwardProxy, context = '/t', host = 'localhost'): TestApi {
  return { context, host, port, route: { secured: true, tlsClient: 'default', proxy } }
}

export async function gatewayFor(
  t: TestContext,
  apis: readonly TestApi[],
  http: Readonly<Record<string, unknown>> = {},
  tls: TlsClientPlan = TLS,
): Promise<TestGateway> {
  const gateway = await startGateway(apis, { http, tlsClients: { default: tls } })
  t.after(() => gateway.stop())
  return gateway
}

export async function sendGet(t: TestContext, gateway: TestGateway, path: string): Promise<Peer> {
  const client = await connectPeer(gateway.port)
  t.after(() => client.destroy())
  client.send(`GET ${path} HTTP/1.1\r\nHost: a\r\n\r\n`)
  return client
}

/** The fault description for a proxy that refuses CONNECT; the address of the proxy is in the log only. */
export function refusalDescription(status: number): string {
  return `The forward proxy refused the request (${status})`
}

/** Asserts that a request fails with 502 and 101503, with the cause in one log event. */
export async function assertRefused(t: TestContext, gateway: TestGateway, cause: string): Promise<void> {
  const from = gateway.reports.length
  const countedBefore = countedFailures(gateway, 101503, 0)
  const [, status] = /^proxy \S+ answered (\d+)/.exec(cause) ?? []
  const description = status === undefined ? undefined : refusalDescription(Number(status))
  assertFault(await takeResponse(await sendGet(t, gateway, '/t/it')), 502, 101503, 0, false, description)
  const { fields, level } = failureLine(gateway, from)
  assert.equal(fields.CAUSE_OF_ERROR, cause)
  assert.equal(fields.ERROR_CODE, 101503)
  assert.equal(level, 'warn')
  assert.equal(countedFailures(gateway, 101503, 0), countedBefore + 1)
  assert.equal(gateway.metrics().counts.targetsOpen, 0)
}
