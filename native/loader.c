/* Loader: creates one module of the library that mypyc has made.
 *
 * mypyc's own way is a shared library for each module, which finds its function in the common
 * library and calls it: a hundred small files to compile, link and load. This is one for all.
 */
#include <Python.h>

static PyObject *create(PyObject *self, PyObject *arguments)
{
    PyObject *library;
    const char *function;
    if (!PyArg_ParseTuple(arguments, "Os", &library, &function)) return NULL;
    PyObject *capsule = PyObject_GetAttrString(library, function);
    if (capsule == NULL) return NULL;
    PyObject *(*init)(void) =
        (PyObject *(*)(void))PyCapsule_GetPointer(capsule, PyCapsule_GetName(capsule));
    Py_DECREF(capsule);
    if (init == NULL) return NULL;
    PyObject *module = init();
    Py_XINCREF(module); /* the library keeps one as well */
    return module;
}

static PyMethodDef methods[] = {
    {"create", create, METH_VARARGS, "create(library, function): the module"},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "rollcall_loader", NULL, -1, methods,
};

PyMODINIT_FUNC PyInit_rollcall_loader(void) { return PyModule_Create(&definition); }
