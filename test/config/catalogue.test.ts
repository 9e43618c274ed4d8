import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allKeys, RULES } from '../../src/config/catalogue.ts'
import { loadConfiguration } from '../../src/config/load.ts'
import { temporaryHome } from './temporary-home.ts'

test('a configuration is frozen throughout and can be handed to another thread', t => {
  const { configuration } = loadConfiguration(temporaryHome(t, { 'deployment.toml': '' }), [])
  for (const section of Object.values({ configuration, ...configuration })) {
    assert.ok(Object.isFrozen(section))
    for (const value of Object.values(section)) assert.ok(Object.isFrozen(value))
  }
  assert.deepEqual(structuredClone(configuration), configuration)
})

test('every key says what it means, what it expects, and why if it is not acted on', () => {
  for (const { path, definition } of allKeys()) {
    assert.match(definition.meaning, /^[A-Z].*\.$/s, path)
    assert.match(definition.expects, /^[^A-Z]/, path)
    assert.doesNotMatch(definition.inertReason, /\.$/, path)
  }
})

test('every default is a value its own key would take', () => {
  for (const { path, definition } of allKeys()) {
    if (path !== 'server.base_path' && !definition.required)
      assert.deepEqual(definition.read(definition.fallback), definition.fallback, path)
  }
})

test('a default that gives way does so to a key of its own section', () => {
  const paths = new Set(allKeys().map(key => key.path))
  const giving = allKeys().filter(key => key.definition.ceiling !== '')
  assert.equal(giving.length, 5)
  for (const { section, definition } of giving) assert.ok(paths.has(`${section}.${definition.ceiling}`))
})

test('rules are about keys there are', () => {
  const paths = new Set(allKeys().map(key => key.path))
  for (const { keys, must } of RULES) for (const key of keys) assert.ok(paths.has(key), `${key} in "${must}"`)
})
