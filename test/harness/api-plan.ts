/** The default API of tests: published, on every host, with every path and method. */
import { NO_ENDPOINTS, NO_HARD_LIMITS } from '../../src/apis/api-definition.ts'
import type { AccessPlan } from '../../src/auth/auth-plan.ts'
import { OTHER_APIS_ROW } from '../../src/observe/api-metrics.ts'
import type { ApiPlan } from '../../src/plan/reactor-plan.ts'

type Rest = Omit<ApiPlan, 'name' | 'paths' | 'endpoints'>

/** No authentication scheme. */
export const NO_ACCESS: AccessPlan = {
  api: 'plain:1.0.0',
  authField: '',
  schemes: [],
  requiresCertificate: false,
  requiresOther: false,
  certificates: [],
  scopeRoles: {},
  provider: '',
}

export const PLAIN_API = {
  version: '1.0.0',
  hosts: [],
  transports: ['http', 'https'],
  lifecycle: { state: 'PUBLISHED', deprecatedAtMs: 0, sunsetMs: 0 },
  keyType: 'PRODUCTION',
  escapedSlashes: 'refuse',
  isAi: false,
  metricsRow: OTHER_APIS_ROW,
  access: NO_ACCESS,
  tier: '',
  hardLimits: NO_HARD_LIMITS,
  credentials: { production: null, sandbox: null },
  cors: null,
  resources: [],
  sandbox: { ...NO_ENDPOINTS, endpoints: [] },
  mounted: null,
  mediation: null,
} as const satisfies Rest

/** `PLAIN_API` as a definition. */
export const PLAIN_DEFINITION = {
  lifecycle: 'PUBLISHED',
  transports: ['http', 'https'],
  hosts: [],
  keyType: 'PRODUCTION',
  escapedSlashes: 'refuse',
  isAi: false,
  hardLimits: NO_HARD_LIMITS,
  access: { provider: '', plans: [], tier: '', authHeader: '', securitySchemes: [], scopeRoles: {} },
  clientCertificates: [],
  credentials: { production: null, sandbox: null },
  cors: null,
  resources: [],
  sandbox: NO_ENDPOINTS,
  mounted: null,
  mediation: null,
} as const
