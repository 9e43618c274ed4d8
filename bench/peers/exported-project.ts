/** API projects as the reference platform exports them: ten operations, with or without the OpenAPI document. */
import { mkdirSync, writeFileSync } from 'node:fs'

interface ExportedApi {
  readonly name: string
  readonly context: string
  /** URL of the backend. */
  readonly url: string
  /** Includes `Definitions/swagger.yaml`. */
  readonly hasDocument: boolean
  /** All operations require a token. */
  readonly secured?: boolean
}

export const OPERATIONS: Readonly<Record<string, readonly string[]>> = {
  '/orders': ['GET', 'POST'],
  '/orders/{orderId}': ['GET', 'PUT', 'DELETE'],
  '/orders/{orderId}/items': ['GET', 'POST'],
  '/orders/{orderId}/items/{itemId}': ['GET'],
  '/customers/{customerId}': ['GET'],
  '/menu/*': ['GET'],
}

function operation(target: string, verb: string, authType: string): string {
  return `    - id: ""
      target: ${target}
      verb: ${verb}
      authType: ${authType}
      throttlingPolicy: Unlimited
      scopes: []`
}

export function exportedApiYaml({ name, context, url, secured = false }: Omit<ExportedApi, 'hasDocument'>): string {
  const authType = secured ? 'Application & Application User' : 'None'
  const operations = Object.entries(OPERATIONS).flatMap(([target, verbs]) => {
    return verbs.map(verb => operation(target, verb, authType))
  })
  return `type: api
version: v4.3.0
data:
  name: ${name}
  description: Orders of customers, and the menu from which they come.
  context: ${context}
  version: 1.0.0
  provider: admin
  lifeCycleStatus: PUBLISHED
  isDefaultVersion: true
  isRevision: false
  type: HTTP
  transport:
    - http
    - https
  tags:
    - orders
  policies:
    - Unlimited
  visibility: PUBLIC
  endpointConfig:
    endpoint_type: http
    production_endpoints:
      url: ${url}
  operations:
${operations.join('\n')}
`
}

function parameters(target: string): string {
  const names = [...target.matchAll(/\{(\w+)\}/g)].map(([, name]) => name)
  if (names.length === 0) return ''
  const rows = names.map(
    name => `
        - name: ${name}
          in: path
          required: true
          schema:
            type: string`,
  )
  return `\n      parameters:${rows.join('')}`
}

function documentedOperation(target: string, verb: string): string {
  return `    ${verb.toLowerCase()}:
      summary: ${verb} of ${target}${parameters(target)}
      responses:
        "200":
          description: ok
          content:
            application/json:
              schema:
                $ref: '#/components/schemas/Order'
        "404":
          description: not found
      x-auth-type: None
      x-throttling-tier: Unlimited`
}

function openApiDocument({ name }: ExportedApi): string {
  const paths = Object.entries(OPERATIONS).map(
    ([target, verbs]) => `  ${target}:\n${verbs.map(verb => documentedOperation(target, verb)).join('\n')}`,
  )
  return `openapi: 3.0.1
info:
  title: ${name}
  description: Orders of customers, and the menu from which they come.
  version: 1.0.0
servers:
  - url: /
paths:
${paths.join('\n')}
components:
  schemas:
    Order:
      required:
        - orderId
      type: object
      properties:
        orderId:
          type: string
        customerName:
          type: string
        quantity:
          type: integer
        delivered:
          type: boolean
`
}

export function writeExported(home: string, api: ExportedApi): void {
  const project = `${home}/apis/${api.name}`
  mkdirSync(project, { recursive: true })
  writeFileSync(`${project}/api.yaml`, exportedApiYaml(api))
  if (!api.hasDocument) return
  mkdirSync(`${project}/Definitions`)
  writeFileSync(`${project}/Definitions/swagger.yaml`, openApiDocument(api))
}
