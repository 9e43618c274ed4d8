/** Documents for XPath: the nodes that a parser would make, in linear time whatever a client nests or declares. */
import assert from 'node:assert/strict'
import { createRequire } from 'node:module'
import { test } from 'node:test'
import { beginTurn } from '../../src/mediation/flow-limits.ts'
import { DEFAULT_LIMITS } from '../../src/mediation/formats/body-limits.ts'
import { parseXmlText } from '../../src/mediation/formats/xml-reader.ts'
import type { DomNode } from '../../src/mediation/lazy-libraries.ts'
import { markupOf } from '../../src/mediation/value.ts'
import { domOf } from '../../src/mediation/xml-dom.ts'
import { element, type XmlElementNode } from '../../src/mediation/xml-tree.ts'
import { treeOf } from '../../src/mediation/xpath-expression.ts'

interface ParsedNode extends DomNode {
  readonly localName?: string
  readonly prefix?: string | null
  readonly namespaceURI?: string | null
  readonly previousSibling: ParsedNode | null
}

const { DOMParser } = createRequire(import.meta.url)('@xmldom/xmldom') as {
  readonly DOMParser: new () => { parseFromString(text: string, type: string): DomNode }
}

const DOCUMENTS = [
  '<r/>',
  '<r a="1" b="x&#9;y">t<a/>u<b><c>v</c></b> </r>',
  '<r xmlns="u" xmlns:p="v" p:a="1" a="2"><p:b xmlns:p="w" p:c="3"><p:d/></p:b><e xmlns=""><f/></e><p:g/></r>',
  '<r xml:lang="en"><a xml:space="preserve"> </a></r>',
  '<r>&lt;&amp;<![CDATA[<x>]]>&#13;</r>',
  '<r><?xml-multiple a?><a/><a/></r>',
]

function shown(node: ParsedNode): unknown {
  const { nodeType, nodeName, nodeValue, localName, prefix, namespaceURI, attributes = [] } = node
  const named = { localName: localName ?? null, prefix: prefix || null, namespace: namespaceURI || null }
  return {
    ...{ nodeType, nodeName, nodeValue, parent: node.parentNode?.nodeName, ...named },
    siblings: [node.previousSibling?.nodeName, node.nextSibling?.nodeName],
    first: node.firstChild?.nodeName,
    attributes: nodeType === 1 ? Array.from(attributes, each => shown(each as ParsedNode)) : [],
    owner: node.ownerElement?.nodeName,
    children: Array.from(node.childNodes ?? [], each => shown(each as ParsedNode)),
  }
}

test('a document has the nodes that a parser makes of its text', () => {
  for (const text of DOCUMENTS) {
    const parsed = new DOMParser().parseFromString(text.replace('<![CDATA[<x>]]>', '&lt;x>'), 'text/xml').firstChild!
    const root = domOf(parseXmlText(text, DEFAULT_LIMITS))
    assert.deepEqual(shown(root as ParsedNode), shown(parsed as ParsedNode), text)
  }
})

/** Calls `visit` at each look at the attributes of the element. */
function watched({ name, attributes, children }: XmlElementNode, visit: () => void): XmlElementNode {
  return {
    name,
    children,
    get attributes() {
      visit()
      return attributes
    },
  }
}

test('each element of a deep document is a tree that shares its parts, and is written once', () => {
  let visits = 0
  let tree = element('item', ['x'])
  for (let levels = 1; levels < 90; levels++) tree = watched(element('item', [tree]), () => visits++)
  const nodes: DomNode[] = []
  for (let node: DomNode | null = domOf(tree); node?.nodeType === 1; node = node.firstChild) nodes.push(node)
  visits = 0
  const trees = nodes.map(treeOf) as XmlElementNode[]
  for (const [at, each] of trees.slice(0, -1).entries()) assert.equal(each.children[0], trees[at + 1])
  const text = markupOf({ kind: 'xml', nodes: trees })
  assert.equal(text.split('<item>').length - 1, (90 * 91) / 2 - 1)
  assert.ok(visits < 4 * 90, String(visits))
})

test('a tree that moves takes the declarations from outside with it', () => {
  const text = '<r xmlns="u" xmlns:p="v" xmlns:q="w"><a p:x="1"><q:b xmlns:q="z"><c/></q:b></a></r>'
  const a = domOf(parseXmlText(text, DEFAULT_LIMITS)).firstChild!
  const [ofA, ofB] = [a, a.firstChild!].map(node => (treeOf(node) as XmlElementNode).attributes)
  assert.deepEqual(
    new Map(ofA),
    new Map([
      ['xmlns', 'u'],
      ['xmlns:p', 'v'],
      ['p:x', '1'],
    ]),
  )
  assert.deepEqual(
    new Map(ofB),
    new Map([
      ['xmlns', 'u'],
      ['xmlns:q', 'z'],
    ]),
  )
})

test('declarations are not copied for each element that has some', () => {
  beginTurn()
  const declarations = Array.from({ length: 100_000 }, (_, at) => [`xmlns:a${at}`, `u${at}`] as const)
  const children = Array.from({ length: 100_000 }, (_, at) => element(`a${at}:b`, [], [['xmlns:c', 'v']]))
  const root = domOf(element('r', children, declarations))
  assert.equal((root.firstChild as ParsedNode).namespaceURI, 'u0')
  for (const node of root.childNodes) assert.ok(treeOf(node))
})
