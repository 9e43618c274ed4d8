/** Gateways with mounted APIs for tests. */
import { fileURLToPath } from 'node:url'
import type { MountedDefinition } from '../../src/apis/api-definition.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'
import { type GatewayOptions, planGateway, startGateway, type TestGateway } from './gateway.ts'
import { PLAIN_API } from './api-plan.ts'
import { NO_ENDPOINTS } from '../../src/apis/api-definition.ts'
import type { Owner } from './suite.ts'

const SCRIPTED = fileURLToPath(new URL('../mounted/scripted-api.ts', import.meta.url))

export function mounted(changes: Partial<MountedDefinition> = {}): MountedDefinition {
  const keyTypes = { production: true, sandbox: true }
  return { module: SCRIPTED, digest: '', settings: {}, keyTypes, work: 'none', ...changes }
}

export function mountedApi(overrides: Partial<ApiPlan> = {}): ApiPlan {
  const endpoints = { ...NO_ENDPOINTS, endpoints: [] }
  return { ...PLAIN_API, name: 'mounted', paths: ['/m'], endpoints, mounted: mounted(), ...overrides }
}

/** Starts a gateway with a scripted mounted API at `/m`, or with the given APIs, on one worker thread. */
export async function startMounted(
  t: Owner,
  options: GatewayOptions = {},
  apis: readonly ApiPlan[] = [mountedApi()],
): Promise<TestGateway> {
  const { workers } = planGateway([], options).plan
  const threads = { mediation: 1, background: 1 }
  const gateway = await startGateway([], { workers: { ...workers, threads }, ...options, apis })
  t.after(() => gateway.stop())
  return gateway
}
