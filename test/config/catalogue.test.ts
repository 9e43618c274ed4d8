import assert from 'node:assert/strict'
import { test } from 'node:test'
import { allKeys, RULES } from '../../src/config/catalogue.ts'
import { keyPath } from '../../src/config/key.ts'
import { loadConfiguration } from '../harness/configuration.ts'
import { temporaryHome } from './temporary-home.ts'

test('a configuration is deeply frozen and can be sent to another thread', t => {
  const { configuration } = loadConfiguration(temporaryHome(t, { 'deployment.toml': '' }), [])
  for (const section of Object.values({ configuration, ...configuration })) {
    assert.ok(Object.isFrozen(section))
    for (const value of Object.values(section)) assert.ok(Object.isFrozen(value))
  }
  assert.deepEqual(structuredClone(configuration), configuration)
})

test('every key has a meaning, an expectation, and a reason where it is inert', () => {
  for (const { path, definition } of allKeys()) {
    assert.match(definition.meaning, /^[A-Z].*\.$/s, path)
    assert.match(definition.expects, /^[^A-Z]/, path)
    assert.doesNotMatch(definition.inertReason, /\.$/, path)
  }
})

test('every default is a value that its key accepts', () => {
  for (const { path, definition } of allKeys()) {
    if (path !== 'server.base_path' && !definition.required)
      assert.deepEqual(definition.read(definition.defaultValue), definition.defaultValue, path)
  }
})

test('no two keys share a path or an alias', () => {
  const paths = allKeys().flatMap(({ section, path, definition }) => [
    path,
    ...definition.aliases.map(alias => keyPath(section, alias)),
  ])
  assert.deepEqual(
    paths.filter((path, index) => paths.indexOf(path) !== index),
    [],
  )
})

test('a default refers to a key that exists', () => {
  const paths = new Set(allKeys().map(key => key.path))
  const dependent = allKeys().filter(({ definition }) => definition.cappedBy !== '' || definition.follows !== '')
  assert.ok(dependent.length > 0)
  for (const { section, definition } of dependent) {
    const { cappedBy, follows } = definition
    if (cappedBy !== '') assert.ok(paths.has(keyPath(section, cappedBy)), cappedBy)
    if (follows !== '') assert.ok(paths.has(follows.startsWith('.') ? section + follows : follows), follows)
  }
})

test('every rule names keys that exist', () => {
  const paths = new Set(allKeys().map(key => key.path))
  for (const { keys, must } of RULES) for (const key of keys) assert.ok(paths.has(key), `${key} in "${must}"`)
})
