/** Gateways to one backend, one for each set of settings, started with the first test that needs them. */
import { after } from 'node:test'
import { startGateway, type TestGateway } from './gateway.ts'

/** Returns the gateway with these settings of `[transport.passthru_http]`; its API is `/echo`. */
export function gatewaysBySettings(
  backendPort: number,
): (http: Readonly<Record<string, unknown>>) => Promise<TestGateway> {
  const gateways = new Map<string, TestGateway>()
  after(() => {
    for (const gateway of gateways.values()) gateway.stop()
  })
  return async http => {
    const key = JSON.stringify(http)
    let gateway = gateways.get(key)
    if (gateway === undefined) {
      gateway = await startGateway([{ context: '/echo', port: backendPort }], { http })
      gateways.set(key, gateway)
    }
    return gateway
  }
}
