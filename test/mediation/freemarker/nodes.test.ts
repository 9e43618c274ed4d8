/** XML in templates, by FreeMarker's XML processing guide (2.3.30). */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { element as e } from '../../../src/mediation/xml-tree.ts'
import { renderedOf } from './rendered.ts'

// biome-ignore-start lint/suspicious/noTemplateCurlyInString: templates

const BOOK = e('book', [
  '\n',
  e('title', ['Test <Book>'], [['lang', 'en']]),
  e('chapter', [e('title', ['Ch1']), e('para', ['p1.1']), e('para', ['p1.2'])], [['n', '1']]),
  e(
    'chapter',
    [e('title', ['Ch2']), e('para', ['p2.1'])],
    [
      ['n', '2'],
      ['x:y', 'z'],
      ['xmlns:x', 'urn:x'],
    ],
  ),
  e('empty', []),
])
const NAMESPACED = e('b:order', [e('b:id', ['7'], [['b:k', 'v']]), e('id', ['8'])], [['xmlns:b', 'urn:b']])

const ROWS: readonly (readonly [template: string, output: string])[] = [
  // Accessing elements by name.
  ['${doc.book.title}', 'Test <Book>'],
  ['${doc.book.chapter[0].title} ${doc.book.chapter[1].para} ${doc.book.chapter?size}', 'Ch1 p2.1 2'],
  [
    '<#list doc.book.chapter as c>${c.title}:<#list c.para as p>${p}<#sep>,</#list>;</#list>',
    'Ch1:p1.1,p1.2;Ch2:p2.1;',
  ],
  ['<#list doc.book.title as t>${t}</#list> ${doc.book.title[0]}', 'Test <Book> Test <Book>'],
  ['${doc.book.chapter.para?size} ${doc.book.chapter.para[2]}', '3 p2.1'],
  // Accessing attributes.
  ['${doc.book.title.@lang} ${doc.book.chapter[1].@n} ${doc.book.title["@lang"]}', 'en 2 en'],
  ['<#list doc.book.chapter[1].@* as a>${a?node_name}=${a}<#sep>,</#list> ${doc.book.chapter[1].@@?size}', 'n=2,y=z 2'],
  ['<#list doc.book.chapter.@n as n>${n}</#list>', '12'],
  // What is absent is an empty list of nodes.
  [
    '${doc.book.none?size} ${doc.book.none???c} ${doc.book.none[0]!"d"} ${doc.book.none.x[0]???c} ${doc.book.@none[0]!"d"}',
    '0 true d false d',
  ],
  ['${doc.book.none?has_content?c} ${doc.book.title?has_content?c} [${doc.book.empty}]', 'false true []'],
  ['<#list doc.book.none as n>x<#else>none</#list>', 'none'],
  // Children, descendants, parents.
  ['<#list doc.book.chapter[0]?children as c>${c?node_name}<#sep>,</#list>', 'title,para,para'],
  ['${doc.book?children?size} ${doc.book?children[0]?node_type} ${doc.book.*?size} ${doc.**?size}', '5 text 4 10'],
  [
    '<#list doc.book?children?filter(c -> c?node_type == "element") as c>${c?node_name} </#list>',
    'title chapter chapter empty ',
  ],
  [
    '${doc?node_type} ${doc.book?node_type} ${doc.book.title.@lang?node_type} ${doc?node_name}',
    'document element attribute @document',
  ],
  [
    '${doc.book.title?parent?node_name} ${doc.book.title?root?node_type} ${doc.book.chapter[0].para[0]?ancestors?size}',
    'book document 3',
  ],
  [
    '${doc.book.chapter[0]?previous_sibling?node_name} ${doc.book.empty?next_sibling???c} ${doc.book.chapter[0].para[0]?ancestors("book")?size}',
    'title false 1',
  ],
  // Special keys.
  [
    '${doc.book.title.@@markup} ${doc.book.title.@@nested_markup}',
    '<title lang="en">Test &lt;Book&gt;</title> Test &lt;Book&gt;',
  ],
  [
    '${doc.book.chapter[1].@@text} ${doc.book.title.@@qname} ${doc.book.title.@@local_name} [${doc.book.title.@@namespace}]',
    'Ch2p2.1 title title []',
  ],
  // Texts of nodes in operations.
  [
    '${doc.book.title?upper_case} ${(doc.book.chapter[0].@n == "1")?c} ${doc.book.chapter[1].@n?number + 1} ${"x" + doc.book.title}',
    'TEST <BOOK> true 3 xTest <Book>',
  ],
  ['${doc.book.chapter?map(c -> c.title)?join("|")} ${doc.book.chapter?sort_by("title")[1].@n}', 'Ch1|Ch2 2'],
  [
    '${doc.book?is_node?c} ${doc.book?is_hash?c} ${doc.book?is_sequence?c} ${doc.book.title?is_string?c} ${doc.book.chapter?is_node?c}',
    'true true true true false',
  ],
  // Names of elements that JavaScript knows.
  ['${doc.constructor?size} ${doc.book.__proto__?size} ${doc.book["toString"]?size}', '0 0 0'],
]

for (const [template, output] of ROWS) {
  test(`${template} is ${output}`, () => {
    assert.equal(renderedOf(template, BOOK), output)
  })
}

/** XML namespaces. */
const NAMESPACES: readonly (readonly [template: string, output: string])[] = [
  ['<#ftl ns_prefixes={"o": "urn:b"}>${doc["o:order"]["o:id"]} ${doc["o:order"].id}', '7 8'],
  ['<#ftl ns_prefixes={"D": "urn:b"}>${doc.order.id} ${doc.order["N:id"]}', '7 8'],
  ['<#ftl ns_prefixes={"o": "urn:b"}>${doc.o\\:order.o\\:id.@o\\:k} ${doc["o:order"]["o:id"]["@b:k"]}', 'v v'],
  ['${doc.order?size} ${doc["b:order"]?size} ${doc.*.*?size} ${doc.*?node_namespace}', '0 0 2 urn:b'],
]

for (const [template, output] of NAMESPACES) {
  test(`${template} is ${output}`, () => {
    assert.equal(renderedOf(template, NAMESPACED), output)
  })
}

const MANY = 100_000

test('a loop that asks for all children in each turn, and for siblings, looks at each child once', () => {
  const root = e(
    'r',
    Array.from({ length: MANY }, () => e('a', [])),
  )
  const turn = '<#if doc.r.a?size == 1 || !(a?next_sibling)??>${doc.r.a?size?c}</#if>'
  assert.equal(renderedOf(`<#list doc.r.a as a>${turn}</#list>`, root), String(MANY))
})

test('attributes of an element are no work for the names of its children', () => {
  const attributes = Array.from({ length: MANY }, (_, at) => [`a${at}`, ''] as const)
  const root = e(
    'r',
    Array.from({ length: MANY }, () => e('a', [])),
    attributes,
  )
  assert.equal(renderedOf('${doc.r.a?size?c}', root), String(MANY))
})
// biome-ignore-end lint/suspicious/noTemplateCurlyInString: templates
