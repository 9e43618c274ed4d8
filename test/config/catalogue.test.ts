import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allKeys, RULES } from '../../src/config/catalogue.ts'
import { keyPath } from '../../src/config/key.ts'
import { loadConfiguration } from '../harness/configuration.ts'
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

test('no path is taken twice, by a key or by another spelling of one', () => {
  const paths = allKeys().flatMap(({ section, path, definition }) => [
    path,
    ...definition.aliases.map(alias => keyPath(section, alias)),
  ])
  assert.deepEqual(
    paths.filter((path, index) => paths.indexOf(path) !== index),
    [],
  )
})

test('a default that gives way, or follows another key, does so to a key there is', () => {
  const paths = new Set(allKeys().map(key => key.path))
  const dependent = allKeys().filter(({ definition }) => definition.ceiling !== '' || definition.follows !== '')
  assert.ok(dependent.length > 0)
  for (const { section, definition } of dependent) {
    const { ceiling, follows } = definition
    if (ceiling !== '') assert.ok(paths.has(keyPath(section, ceiling)), ceiling)
    if (follows !== '') assert.ok(paths.has(follows.startsWith('.') ? section + follows : follows), follows)
  }
})

test('rules are about keys there are', () => {
  const paths = new Set(allKeys().map(key => key.path))
  for (const { keys, must } of RULES) for (const key of keys) assert.ok(paths.has(key), `${key} in "${must}"`)
})
