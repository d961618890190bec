import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  type AsExpression,
  type CallExpression,
  type Node,
  type ObjectLiteralExpression,
  SyntaxKind,
  type TypeNode,
} from 'typescript/unstable/ast';
import * as is from 'typescript/unstable/ast/is';
import { API, type Checker, type Type, TypeFlags } from 'typescript/unstable/sync';
import { root } from './root.ts';

/**
 * Names of properties and methods that nobody but the code of the browser bundles can see, so that the build may shorten them.
 *
 * A name stays as it is if it occurs in the public declarations, in the typings of JavaScript or of browsers, or as a string, and if
 * it may be looked up by a key that is computed: in `x[key]`, `key in x`, `Object.keys(x)` and their like all names of x stay. So do the
 * names of every type that code gives to a value of unknown type, since such a value can come from elsewhere, and of element types.
 *
 * @param files The modules of the bundles, as paths from the root of the project.
 * @param api The public declarations.
 */
export function internalNames(files: readonly string[], api: string): string[] {
  const compiler = new API({ cwd: root });
  try {
    const config = join(root, 'tsconfig.build.json');
    const project = compiler.updateSnapshot({ openProject: config }).getProject(config);
    if (!project) throw new Error(`${config} is no project`);
    const names = new Names(project.checker);
    for (const file of files) {
      const source = project.program.getSourceFile(join(root, file));
      if (!source) throw new Error(`${file} is no part of ${config}`);
      names.take(source);
    }
    const library = project.program.getSourceFileNames().find((file) => /\blib\.es5\.d\.ts$/.test(file));
    if (library === undefined) throw new Error('the typings of JavaScript were not found');
    names.keep(wordsOf(api));
    for (const name of readdirSync(dirname(library)))
      if (/^lib\.(es|dom|webworker|decorators)/.test(name))
        names.keep(wordsOf(readFileSync(join(dirname(library), name), 'utf8')));
    return names.internal();
  } finally {
    compiler.close();
  }
}

/** The words of a text that are not in its comments. */
function wordsOf(text: string): string[] {
  return text.replaceAll(/\/\*[\s\S]*?\*\/|\/\/.*/g, '').match(/[\p{ID_Start}$_][\p{ID_Continue}$]*/gu) ?? [];
}

/** Functions that see the names of what they are given. */
const SEEING =
  /^(Object\.(keys|entries|values|assign|hasOwn|getOwnProperty\w+|definePropert(y|ies))|Reflect\.\w+|JSON\.stringify)$/;

/** What gives objects from elsewhere a type that nobody has checked. */
const FOREIGN = /^(import|JSON\.parse|.*\.json|.*postMessage|structuredClone|.*\.(onmessage|data))$/;

/** Types of objects that users hold, although the public declarations do not tell what is in them. */
const SHOWN = new Set(['FullType']);

class Names {
  readonly #checker: Checker;
  readonly #declared = new Set<string>();
  readonly #kept = new Set<string>();
  /** Expressions whose names are seen, and the key that is looked up in them if there is one. */
  readonly #looked: [object: Node, key: Node | null][] = [];
  /** What types are given to, and these types. */
  readonly #claims: [value: Node, type: TypeNode][] = [];
  readonly #literals: ObjectLiteralExpression[] = [];
  readonly #shown: TypeNode[] = [];

  constructor(checker: Checker) {
    this.#checker = checker;
  }

  keep(names: Iterable<string>): void {
    for (const name of names) this.#kept.add(name);
  }

  /** Collects what a part of the program says. */
  take(node: Node): void {
    // The members of a namespace are exports, which keep their names.
    if (is.isNamespaceImport(node)) this.#looked.push([node.name, null]);
    if (is.isTypeAliasDeclaration(node) && SHOWN.has(node.name.text)) this.#shown.push(node.type);
    if (is.isLiteralTypeNode(node)) return;
    if (isMember(node) && is.isIdentifier(node.name)) this.#declared.add(node.name.text);
    if (is.isStringLiteral(node) || is.isNoSubstitutionTemplateLiteral(node)) this.#kept.add(node.text);
    else if (is.isElementAccessExpression(node)) this.#looked.push([node.expression, node.argumentExpression]);
    else if (is.isForInStatement(node)) this.#looked.push([node.expression, null]);
    else if (is.isBinaryExpression(node) && node.operatorToken.kind === SyntaxKind.InKeyword)
      this.#looked.push([node.right, node.left]);
    else if (is.isCallExpression(node)) this.#call(node);
    else if (is.isAsExpression(node)) this.#claims.push([origin(node), node.type]);
    else if (is.isTypePredicateNode(node) && node.type) this.#claims.push([node.parameterName, node.type]);
    else if (is.isPropertyAccessExpression(node) && is.isMetaProperty(node.expression)) this.#kept.add(node.name.text);
    else if (is.isObjectLiteralExpression(node)) this.#literals.push(node);
    node.forEachChild((child) => this.take(child));
  }

  #call({ expression, arguments: given }: CallExpression): void {
    const called = expression.getText();
    if (FOREIGN.test(called))
      throw new Error(`${called}() in a page: scripts/internal-names.ts does not know what it brings`);
    if (SEEING.test(called)) this.#looked.push(...given.map((each): [Node, null] => [each, null]));
  }

  internal(): string[] {
    const keys = this.#typesOf(this.#looked.flatMap(([, key]) => (key ? [key] : [])));
    // A key that is written out is a string, and kept as one. Numbers and symbols are no names.
    const looked = this.#looked.filter(([, key]) => {
      const flags = key && (keys.get(key)?.flags ?? 0);
      return (
        flags === null || (flags & (TypeFlags.StringLiteral | TypeFlags.NumberLike | TypeFlags.ESSymbolLike)) === 0
      );
    });
    for (const type of this.#typesOf(looked.map(([object]) => object)).values())
      this.#keepNames(type, new Set(), false);
    const values = this.#typesOf(this.#claims.map(([value]) => value));
    for (const [value, claimed] of this.#claims) {
      if (((values.get(value)?.flags ?? TypeFlags.Any) & TypeFlags.AnyOrUnknown) === 0) continue;
      const type = this.#checker.getTypeFromTypeNode(claimed);
      if (type) this.#keepNames(type, new Set(), true);
    }
    for (const shown of this.#shown) {
      const type = this.#checker.getTypeFromTypeNode(shown);
      if (type) this.#keepNames(type, new Set(), true);
    }
    for (const literal of this.#literals) {
      const names = literal.properties.flatMap((each) =>
        isMember(each) && is.isIdentifier(each.name) ? [each.name.text] : [],
      );
      if (names.every((name) => this.#kept.has(name))) continue;
      const type = this.#checker.getContextualType(literal);
      if (type && this.#partsOf(type).some((part) => this.#checker.getIndexInfosOfType(part).length > 0))
        this.keep(names);
    }
    return [...this.#declared].filter((name) => !this.#kept.has(name)).sort();
  }

  /** All in one request: the compiler is another process. */
  #typesOf(nodes: readonly Node[]): Map<Node, Type> {
    const types = this.#checker.getTypeAtLocation(nodes);
    return new Map(nodes.flatMap((node, i) => (types[i] ? [[node, types[i]]] : [])));
  }

  #keepNames(type: Type, seen: Set<number>, deep: boolean): void {
    for (const part of this.#partsOf(type)) {
      if (seen.has(part.id)) continue;
      seen.add(part.id);
      const properties = this.#checker.getPropertiesOfType(part);
      this.keep(properties.map(({ name }) => name));
      if (!deep) continue;
      for (const found of this.#checker.getTypeOfSymbol(properties)) if (found) this.#keepNames(found, seen, deep);
    }
  }

  /** A type that is not a union, or the types that it consists of. */
  #partsOf(type: Type): readonly Type[] {
    const plain = type.isTypeParameter() ? (this.#checker.getBaseConstraintOfType(type) ?? type) : type;
    return plain.isUnionType() || plain.isIntersectionType()
      ? plain.getTypes().flatMap((each) => this.#partsOf(each))
      : [plain];
  }
}

/** What a type is claimed of: in `x as unknown as T` it is x. */
function origin({ expression }: AsExpression): Node {
  return is.isAsExpression(expression) && expression.type.kind === SyntaxKind.UnknownKeyword
    ? expression.expression
    : expression;
}

function isMember(node: Node): node is Node & { readonly name: Node } {
  switch (node.kind) {
    case SyntaxKind.PropertyDeclaration:
    case SyntaxKind.PropertySignature:
    case SyntaxKind.PropertyAssignment:
    case SyntaxKind.ShorthandPropertyAssignment:
    case SyntaxKind.MethodDeclaration:
    case SyntaxKind.MethodSignature:
    case SyntaxKind.GetAccessor:
    case SyntaxKind.SetAccessor:
      return true;
    default:
      return false;
  }
}
