/** What an API of a test is where the test is not about it: published, on every host, with every path and method. */
import { NO_ENDPOINTS } from '../../src/config/api-definition.ts'
import type { AccessPlan } from '../../src/identity/identity-plan.ts'
import type { ApiPlan } from '../../src/plan.ts'

type Rest = Omit<ApiPlan, 'name' | 'paths' | 'endpoints'>

/** Nothing is asked of anybody: the tests that are about it say what is. */
export const NO_ACCESS: AccessPlan = {
  subject: 'plain:1.0.0',
  authField: '',
  schemes: [],
  needsCertificate: false,
  needsOther: false,
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
  isAi: false,
  access: NO_ACCESS,
  credentials: { production: null, sandbox: null },
  cors: null,
  resources: [],
  sandbox: { ...NO_ENDPOINTS, endpoints: [] },
} as const satisfies Rest

/** The same of a definition. */
export const PLAIN_DEFINITION = {
  lifecycle: 'PUBLISHED',
  transports: ['http', 'https'],
  hosts: [],
  keyType: 'PRODUCTION',
  isAi: false,
  access: { provider: '', plans: [], tier: '', authHeader: '', securitySchemes: [], scopeRoles: {} },
  clientCertificates: [],
  credentials: { production: null, sandbox: null },
  cors: null,
  resources: [],
  sandbox: NO_ENDPOINTS,
} as const
