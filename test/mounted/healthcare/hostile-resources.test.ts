/** Random and hostile resources: nothing throws, hangs, or passes that breaks a rule. */
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { applyJsonPatch } from '../../../src/mounted/healthcare/json-patch.ts'
import { isObject, type JsonObject, readJson, writeJson } from '../../../src/mounted/healthcare/json-text.ts'
import { hasErrors, operationOutcome } from '../../../src/mounted/healthcare/outcome.ts'
import { PatchError } from '../../../src/mounted/healthcare/patch-result.ts'
import { elementsOf, summaryOf } from '../../../src/mounted/healthcare/projection.ts'
import { validateResource } from '../../../src/mounted/healthcare/validation.ts'
import { IS_LONG, Random, SEED } from '../../harness/random.ts'
import { fullService, serviceWith } from './service-example.ts'

const RUNS = IS_LONG ? 50_000 : 1500
/** Values that no element of the example may have in the place of its own. */
const WRONG: readonly unknown[] = [null, '', [], {}, [null], [[]], { a: 1 }, '\u0000', ' ']

interface Spot {
  readonly parent: JsonObject | unknown[]
  readonly key: string | number
}

function seeded(t: TestContext): Random {
  t.diagnostic(`seed ${SEED}`)
  return new Random(SEED)
}

/** Every value of a resource below its root. */
function spotsOf(value: unknown): readonly Spot[] {
  if (Array.isArray(value)) return value.flatMap((item, key) => [{ parent: value, key }, ...spotsOf(item)])
  if (!isObject(value)) return []
  return Object.entries(value).flatMap(([key, item]) => [{ parent: value, key }, ...spotsOf(item)])
}

function put({ parent, key }: Spot, value: unknown): void {
  ;(parent as JsonObject)[key] = value
}

test('a wrong value anywhere in a valid resource is refused, with a place', t => {
  const random = seeded(t)
  for (let run = 0; run < RUNS; run++) {
    const service = fullService()
    const spot = random.pick(spotsOf(service))
    const wrong = random.pick(WRONG)
    put(spot, wrong)
    const issues = validateResource(service, 'HealthcareService')
    assert.ok(hasErrors(issues), `seed ${SEED}, run ${run}: ${writeJson(wrong)} at ${spot.key}`)
    assert.ok(issues.every(({ expression, code }) => expression !== '' || code === 'required'))
  }
})

test('an unknown element anywhere in a valid resource is refused at its place', t => {
  const random = seeded(t)
  for (let run = 0; run < RUNS; run++) {
    const service = fullService()
    const objects = [service, ...spotsOf(service).map(({ parent, key }) => (parent as JsonObject)[key])].filter(
      isObject,
    )
    const name = random.pick(['colour', '_colour', 'resource Type', 'toString', 'hasOwnProperty', 'valueRobot', '0'])
    random.pick(objects)[name] = 'x'
    const [issue, ...others] = validateResource(service, 'HealthcareService')
    assert.equal(issue?.detail, 'unknown-element', `seed ${SEED}, run ${run}: ${name}`)
    assert.deepEqual(others, [])
  }
})

test('a valid resource with an element removed stays valid, or an invariant or a mandatory element says why', t => {
  const random = seeded(t)
  for (let run = 0; run < RUNS; run++) {
    const service = fullService()
    const { parent, key } = random.pick(spotsOf(service).filter(({ parent }) => !Array.isArray(parent)))
    delete (parent as JsonObject)[key]
    const allowed = ['required', 'invariant', 'structure']
    for (const { code } of validateResource(service, 'HealthcareService'))
      assert.ok(allowed.includes(code), String(key))
  }
})

test('random JSON is refused without an exception, and its outcome is a valid resource', t => {
  const random = seeded(t)
  const names = [
    'resourceType',
    'id',
    'extension',
    'url',
    'valueString',
    'contained',
    'text',
    'div',
    '_name',
    'name',
    '__proto__',
    'meta',
    'a b',
  ]
  const randomValue = (depth: number): unknown => {
    switch (random.below(depth > 4 ? 5 : 7)) {
      case 0:
        return random.pick(['HealthcareService', 'Bundle', '#a', 'x', '', '\ud800', '2024'])
      case 1:
        return random.below(3)
      case 2:
        return random.once(2)
      case 3:
        return null
      case 4:
        return '<div xmlns="http://www.w3.org/1999/xhtml">x</div>'
      case 5:
        return Array.from({ length: random.below(3) }, () => randomValue(depth + 1))
      default:
        return Object.fromEntries(
          Array.from({ length: random.below(4) }, () => [random.pick(names), randomValue(depth + 1)]),
        )
    }
  }
  for (let run = 0; run < RUNS; run++) {
    const value = {
      ...(randomValue(0) as JsonObject),
      resourceType: random.pick(['HealthcareService', 'Bundle', 'Parameters']),
    }
    const issues = validateResource(value)
    if (issues.length === 0) continue
    const outcome = readJson(writeJson(operationOutcome(issues)))
    const faults = validateResource(outcome, 'OperationOutcome').filter(({ severity }) => severity === 'error')
    assert.deepEqual(faults, [], `seed ${SEED}, run ${run}: ${writeJson(value)}`)
  }
})

test('a random JSON Patch either fails or makes a resource with the same type and id', t => {
  const random = seeded(t)
  const paths = [
    '/id',
    '/name',
    '/meta',
    '/meta/versionId',
    '/telecom/0',
    '/telecom/-',
    '/telecom/9',
    '/resourceType',
    '',
    '/__proto__/x',
    '/a~1b',
    '/contained/0/id',
  ]
  for (let run = 0; run < RUNS; run++) {
    const patch = Array.from({ length: random.between(1, 4) }, () => ({
      op: random.pick(['add', 'remove', 'replace', 'move', 'copy', 'test', 'x']),
      path: random.pick(paths),
      from: random.pick(paths),
      value: random.pick<unknown>([1, 'x', null, [], { id: 'b' }]),
    }))
    const service = fullService()
    try {
      const result = applyJsonPatch(service, patch)
      assert.deepEqual([result.resourceType, result.id], [service.resourceType, service.id])
    } catch (error) {
      assert.ok(error instanceof PatchError, `seed ${SEED}, run ${run}: ${String(error)}`)
    }
    assert.deepEqual(service, fullService())
  }
  assert.equal(({} as JsonObject).x, undefined)
})

test('a projection never has what the resource does not have', t => {
  const random = seeded(t)
  const names = Object.keys(fullService())
  for (let run = 0; run < 200; run++) {
    const service = fullService()
    for (let i = random.below(10); i > 0; i--)
      delete service[random.pick(names.filter(name => name !== 'resourceType'))]
    for (const part of [
      summaryOf(service, random.pick(['true', 'text', 'data'])),
      elementsOf(service, [random.pick(names)]),
    ]) {
      for (const name of Object.keys(part)) assert.ok(name === 'meta' || Object.hasOwn(service, name), name)
    }
  }
})

test('extensions within extensions up to the limit of levels are valid, beyond they are refused', () => {
  const nested = (levels: number): JsonObject => {
    let extension: JsonObject = { url: 'u', valueString: 'x' }
    for (let level = 1; level < levels; level++) extension = { url: 'u', extension: [extension] }
    return serviceWith({ extension: [extension] })
  }
  assert.deepEqual(validateResource(nested(30)), [])
  assert.equal(readJson(writeJson(nested(30))) !== undefined, true)
  assert.throws(() => readJson(writeJson(nested(32))), { kind: 'depth' })
  assert.ok(validateResource(nested(5000)).some(({ detail }) => detail === 'depth'))
})

test('Bundles within Bundles are limited too', () => {
  let bundle: JsonObject = { resourceType: 'Bundle', type: 'collection' }
  for (let level = 0; level < 1000; level++) {
    bundle = { resourceType: 'Bundle', type: 'collection', entry: [{ resource: bundle }] }
  }
  assert.ok(validateResource(bundle).some(({ detail }) => detail === 'depth'))
})

test('a resource with 50,000 faults has an outcome of a hundred', () => {
  const extension = Array.from({ length: 50_000 }, () => ({ url: 'a b' }))
  const issues = validateResource(serviceWith({ extension }))
  assert.equal(issues.length, 101)
})

test('a resource with 20,000 references and contained resources is checked', () => {
  const ids = Array.from({ length: 20_000 }, (_, at) => `l${at}`)
  const contained = ids.map(id => ({ resourceType: 'Location', id }))
  const location = ids.map(id => ({ reference: `#${id}` }))
  assert.deepEqual(validateResource(serviceWith({ contained, location })), [])
})
