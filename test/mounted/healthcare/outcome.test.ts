import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FAULT } from '../../../src/faults/error-codes.ts'
import { valueSetOf } from '../../../src/mounted/healthcare/definition-table.ts'
import { operationOutcome } from '../../../src/mounted/healthcare/outcome.ts'
import { gatewayIssue, SITUATIONS, situationIssue } from '../../../src/mounted/healthcare/situations.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import { serviceWith } from './service-example.ts'

/** Status and issue codes that R4 knows for each failure; the first part of the name says when. */
const FAILURES: readonly (readonly [when: string, status: number, code: string])[] = [
  ['json-syntax', 400, 'invalid'],
  ['resource-structure', 400, 'structure'],
  ['id-mismatch', 400, 'value'],
  ['parameter-value', 400, 'value'],
  ['parameter-not-supported', 400, 'not-supported'],
  ['no-credentials', 401, 'login'],
  ['bad-credentials', 401, 'unknown'],
  ['scope-missing', 403, 'forbidden'],
  ['not-found', 404, 'not-found'],
  ['method-not-allowed', 405, 'not-supported'],
  ['not-acceptable', 406, 'not-supported'],
  ['media-type', 415, 'not-supported'],
  ['duplicate', 409, 'duplicate'],
  ['deleted', 410, 'deleted'],
  ['version-conflict', 412, 'conflict'],
  ['multiple-matches', 412, 'multiple-matches'],
  ['body-too-large', 413, 'too-long'],
  ['url-too-long', 414, 'too-long'],
  ['patch-not-applicable', 422, 'processing'],
  ['resource-rules', 422, 'invariant'],
  ['throttled', 429, 'throttled'],
  ['exception', 500, 'exception'],
  ['overload', 503, 'transient'],
  ['timeout', 504, 'timeout'],
]

for (const [when, status, code] of FAILURES) {
  test(`${when} is ${status} with the issue code ${code}`, () => {
    const row = SITUATIONS[when as keyof typeof SITUATIONS]
    assert.deepEqual([row.status, row.code], [status, code])
  })
}

test('every outcome is a valid OperationOutcome', () => {
  const issues = [
    ...Object.keys(SITUATIONS).map(name => situationIssue(name as keyof typeof SITUATIONS)),
    ...Object.entries(FAULT).map(([code, { status, description }]) => gatewayIssue(Number(code), status, description)),
    ...validateResource(serviceWith({ x: 1, telecom: [{ value: 'x' }], 'a b': 1 })),
  ]
  const faults = validateResource(operationOutcome(issues), 'OperationOutcome')
  assert.deepEqual(
    faults.map(({ detail }) => detail),
    ['dom-6'],
  )
})

test('issue codes are those of R4', () => {
  const { codes } = valueSetOf('issue-type')
  for (const { code } of Object.values(SITUATIONS)) assert.ok(codes.has(code), code)
})

test('a code of the gateway belongs to one situation, which has its status where the specification lists it', () => {
  const seen = new Set<number>()
  for (const [name, { gatewayCodes, status }] of Object.entries(SITUATIONS)) {
    for (const code of gatewayCodes as readonly number[]) {
      assert.ok(!seen.has(code), String(code))
      seen.add(code)
      const fault = (FAULT as Readonly<Record<number, { readonly status: number }>>)[code]
      if (fault !== undefined) assert.equal(status, fault.status, `${name} ${code}`)
    }
  }
})

test('a refusal of the gateway tells its code, its description, and an issue code for its status', () => {
  assert.deepEqual(gatewayIssue(900902, 401, 'No token'), {
    severity: 'error',
    code: 'login',
    detail: '900902',
    text: 'The request has no token',
    diagnostics: 'No token',
  })
  assert.equal(gatewayIssue(303001, 503, 'x').code, 'transient')
  assert.equal(gatewayIssue(999999, 409, 'x').code, 'conflict')
  assert.equal(gatewayIssue(999999, 431, 'x').code, 'too-long')
  assert.equal(gatewayIssue(999999, 418, 'x').code, 'processing')
  assert.equal(gatewayIssue(999999, 599, 'x').code, 'exception')
})

test('a fault of the request has the location http. and its parameter, a fault of the body an expression', () => {
  const issues = [
    situationIssue('parameter-value', { parameter: '_count', diagnostics: '"x" is no number' }),
    situationIssue('id-mismatch', { expression: 'HealthcareService.id' }),
  ]
  assert.deepEqual(operationOutcome(issues).issue, [
    {
      severity: 'error',
      code: 'value',
      details: {
        coding: [{ system: 'urn:sluice:outcome', code: 'parameter-value' }],
        text: 'The value of a parameter is malformed',
      },
      diagnostics: '"x" is no number',
      location: ['http._count'],
    },
    {
      severity: 'error',
      code: 'value',
      details: {
        coding: [{ system: 'urn:sluice:outcome', code: 'id-mismatch' }],
        text: 'The id of the resource is not that of the URL',
      },
      expression: ['HealthcareService.id'],
    },
  ])
})
